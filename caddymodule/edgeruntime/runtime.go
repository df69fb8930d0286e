// Package edgeruntime holds the running edge, which all configurations with the same Redis
// share, so that a reload changes nothing for attempts in flight.
package edgeruntime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/reservation/embedded"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/token"
)

// grace is how long an exiting process waits for attempts in flight, and then again to
// report their outcomes to Redis.
const grace = 10 * time.Second

// Runtime is the running edge. All configurations with the same Redis and the same keys
// share it, so that a reload changes nothing for attempts in flight.
type Runtime struct {
	*edge.Edge
	inFlight   inFlightCounter
	queue      *queue.Queue
	identities identityRules
	embedded   bool
	store      *storeServer // nil: Redis is not ours
	counting   *counting
	log        *zap.Logger
}

// edgeRuntimes is the pool that configurations share during a reload.
var edgeRuntimes = caddy.NewUsagePool()

// embeddedServers has the embedded server of this process while it is used.
var embeddedServers = caddy.NewUsagePool()

const embeddedKey = "embedded"

// Options say which edge runtime a configuration needs.
type Options struct {
	Redis    shard.Options
	Rates    *shard.Options // of the Redis for shared rates; nil: Redis
	Embedded bool           // Redis is the embedded server
	Store    *StoreOptions  // Redis is a server of this process's own; nil: it is not
	AtRisk   risk.Bound     // what a failover may lose
	Keys     []token.Key    // for signing
	Ledger   bool           // a ledger follows the sales, see [Runtime.Leases]
	Log      *zap.Logger
}

// Open takes the edge runtime with these options from the pool, or starts it.
func Open(a *Options) (key string, d *Runtime, err error) {
	keys := make([]shard.SigningKey, len(a.Keys))
	hash := sha256.New()
	for _, o := range []*shard.Options{&a.Redis, a.Rates} {
		if o != nil {
			fmt.Fprintf(hash, "%q %q %t %q %q %q %q %t %q %v %d %v %q %t %v %t\n", o.Addresses, o.Sentinel, o.Cluster, o.Username, o.Password,
				o.SentinelUsername, o.SentinelPassword, o.TLS, o.TLSFiles, o.Timeout, o.ReplicaAcks, o.ReplicaAcksWait, o.Prefix, a.Embedded, o.FenceWait, o.NoFence)
		}
	}
	fmt.Fprintln(hash, a.AtRisk)
	if a.Store != nil {
		fmt.Fprintf(hash, "%q\n", a.Store.Dir)
	}
	for i, k := range a.Keys {
		keys[i] = signingKey(k)
		jwk, _ := k.PublicJWK()
		keys[i].JWK = string(jwk)
		fmt.Fprintln(hash, k.KID())
	}
	key = hex.EncodeToString(hash.Sum(nil))
	v, loaded, err := edgeRuntimes.LoadOrNew(key, func() (caddy.Destructor, error) {
		return start(a, keys)
	})
	if err != nil {
		return "", nil, err
	}
	d = v.(*Runtime)
	if loaded && a.Store != nil {
		if err := d.store.Change(a.Store.Memory); err != nil {
			return "", nil, errors.Join(err, Close(key))
		}
	}
	return key, d, nil
}

// Close releases an edge runtime to the pool.
func Close(key string) error {
	_, err := edgeRuntimes.Delete(key)
	return err
}

func start(a *Options, keys []shard.SigningKey) (*Runtime, error) {
	o := a.Redis
	if a.Embedded {
		v, _, err := embeddedServers.LoadOrNew(embeddedKey, func() (caddy.Destructor, error) {
			s, err := embedded.Start()
			return embeddedServer{s}, err
		})
		if err != nil {
			return nil, err
		}
		v.(embeddedServer).Connect(&o)
	}
	own, err := openStore(a.Store, a.Log, &o)
	if err != nil {
		return nil, err
	}
	d, err := connect(a, o, keys, own)
	if err != nil {
		return nil, errors.Join(err, own.release())
	}
	return d, nil
}

// connect starts an edge at the Redis of o.
func connect(a *Options, o shard.Options, keys []shard.SigningKey, own *storeServer) (*Runtime, error) {
	store, err := reservation.Open(o)
	if err != nil {
		return nil, err
	}
	// Shared rates have connections of their own even on the same Redis: a rush of attempts
	// must not use up those that hold and settle stock.
	ratesAt := o
	if a.Rates != nil {
		ratesAt = *a.Rates
	}
	rates, err := shard.Open(ratesAt)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	d := &Runtime{
		Edge:     edge.New(store, edge.Options{Keys: keys, Log: a.Log, Metrics: meter.EdgeEvents{}, Rates: rates, AtRisk: a.AtRisk, CheckEvery: timing.CheckRedis.Now(), Silence: timing.Silence.Now}),
		embedded: a.Embedded, store: own, log: a.Log,
	}
	d.queue = queue.New(queue.Options{Store: store, Edge: d.Leases().ID(), Secret: d.Secret, Sales: d.saleIDs, Abandoned: d.Abandoned, Kept: d.Leases().Kept, Lease: timing.Turn.Now(), Log: a.Log})
	if a.Ledger {
		d.Leases().UseLedger(notOpen)
	}
	d.Start()
	// The edge learns at once whether Redis answers, so that no buyer is refused after a
	// reload to another one. A Redis that does not answer delays the start by a bounded
	// time.
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	_ = d.Refresh(ctx) // the log and Ready report errors
	d.count()
	return d, nil
}

// notOpen stands for a ledger until the configuration that has it has started.
func notOpen(context.Context, string) (epoch, number int64, err error) {
	return 0, 0, errors.New("the ledger is not open yet")
}

// Destruct closes the edge runtime when its last attempt has ended. Only an exiting process
// waits for that.
func (d *Runtime) Destruct() error {
	if caddy.Exiting() {
		return d.close(grace)
	}
	go func() {
		if err := d.close(time.Hour); err != nil {
			d.log.Warn("closing redis", zap.Error(err))
		}
	}()
	return nil
}

// close waits for the attempts in flight, for at most wait, then stops the edge.
func (d *Runtime) close(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if left := d.inFlight.close(ctx); left > 0 {
		d.log.Error("stopping with attempts in flight: they will be in doubt", zap.Int("attempts", left))
	}
	d.queue.Stop()
	drain, cancelDrain := context.WithTimeout(context.Background(), grace)
	defer cancelDrain()
	err := d.Stop(drain)
	if d.embedded {
		if _, e := embeddedServers.Delete(embeddedKey); err == nil {
			err = e
		}
	}
	return errors.Join(err, d.store.release())
}

// Stop stops the edge, as [edge.Edge.Stop], once it has written what it has counted.
func (d *Runtime) Stop(ctx context.Context) error {
	d.counting.ended.Do(d.stopCounting)
	return d.Edge.Stop(ctx)
}

// embeddedServer closes when its last user releases it.
type embeddedServer struct{ *embedded.Server }

func (s embeddedServer) Destruct() error { return s.Close() }

// Begin reports whether the edge runtime still serves. If so, it stays open until the request
// calls End. A request of an old configuration may arrive after it has closed: its outcome
// could not be reported to Redis.
func (d *Runtime) Begin() bool { return d.inFlight.begin() }

// End is called once for each Begin that returned true.
func (d *Runtime) End() { d.inFlight.end() }

// Client is the connection to the sales' Redis. Between Begin and End it is open.
func (d *Runtime) Client() *shard.Client { return d.Store.Shard() }

// IsLocal reports whether the stock is in the embedded server, which sells to clients on this
// machine only.
func (d *Runtime) IsLocal() bool { return d.embedded }

// Queue is the edge's part in the lines of orders that wait for the shop.
func (d *Runtime) Queue() *queue.Queue { return d.queue }

func (d *Runtime) saleIDs() []string {
	var ids []string
	for l := range d.Catalogue().All {
		ids = append(ids, l.Sale.ID)
	}
	return ids
}

// InFlight is how many requests use the edge runtime.
func (d *Runtime) InFlight() int {
	d.inFlight.mu.Lock()
	defer d.inFlight.mu.Unlock()
	return d.inFlight.n
}

// Wait returns when no request uses the edge runtime, or when ctx ends.
func (d *Runtime) Wait(ctx context.Context) { d.inFlight.wait(ctx) }

// inFlightCounter counts the requests that use the edge runtime.
type inFlightCounter struct {
	mu     sync.Mutex
	n      int
	idle   chan struct{} // closed when n reaches 0; nil: no goroutine waits
	closed bool          // begin returns false
}

// begin counts a request, or returns false after close: a request of an old configuration
// may arrive when the edge runtime has closed and could not report its outcome.
func (f *inFlightCounter) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *inFlightCounter) end() {
	f.mu.Lock()
	f.n--
	if f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
	f.mu.Unlock()
}

// close admits no more requests, and then waits like wait.
func (f *inFlightCounter) close(ctx context.Context) int {
	for {
		f.wait(ctx)
		f.mu.Lock()
		n := f.n // one may have begun since
		f.closed = n == 0 || ctx.Err() != nil
		closed := f.closed
		f.mu.Unlock()
		if closed {
			return n
		}
	}
}

// wait returns when no request is left, or when ctx ends; it returns how many are left.
func (f *inFlightCounter) wait(ctx context.Context) int {
	for {
		f.mu.Lock()
		n := f.n
		if n > 0 && f.idle == nil {
			f.idle = make(chan struct{})
		}
		idle := f.idle
		f.mu.Unlock()
		if n == 0 {
			return 0
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return n
		}
	}
}

// Listing finds a sale, even one that this edge has not yet read.
func (d *Runtime) Listing(ctx context.Context, id string) (*edge.Listing, error) {
	if l, ok := d.Catalogue().Sale(id); ok {
		return l, nil
	}
	if err := d.Refresh(ctx); err != nil {
		return nil, err
	}
	if l, ok := d.Catalogue().Sale(id); ok {
		return l, nil
	}
	return nil, NoSale(id, shard.ErrNoSale)
}

// NoSale adds the id of the missing sale to an error.
func NoSale(id string, err error) error {
	if errors.Is(err, shard.ErrNoSale) {
		return fmt.Errorf("%w: %s", err, id)
	}
	return err
}
