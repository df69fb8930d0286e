// Package desk is the edge at work: one for all configurations with the same Redis, so that a
// reload changes nothing for attempts in flight.
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
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/reservation/embedded"
	"github.com/stockgate/stockgate/shard"
	"github.com/stockgate/stockgate/token"
)

// grace is how long an exiting process waits for attempts in flight, and then for
// Redis to hear how they ended.
const grace = 10 * time.Second

// Desk is the edge at work: one for all configurations with the same Redis and the
// same keys, so that a reload changes nothing for attempts in flight.
type Runtime struct {
	*edge.Edge
	inFlight inFlightCounter
	embedded bool
	log      *zap.Logger
}

// desks are shared by the configurations that live at the same time.
var edgeRuntimes = caddy.NewUsagePool()

// embeddedServers has the one embedded server of this process, while it is used.
var embeddedServers = caddy.NewUsagePool()

const embeddedKey = "embedded"

// Options say what a desk is of.
type Options struct {
	Redis    shard.Options
	Rates    *shard.Options // of the Redis for shared rates; nil: redis
	Embedded bool           // redis is the embedded server
	Keys     []token.Key    // that sign
	Log      *zap.Logger
}

// Open takes the desk with these options from the pool, or starts it.
func Open(a *Options) (key string, d *Runtime, err error) {
	keys := make([]shard.Key, len(a.Keys))
	hash := sha256.New()
	for _, o := range []*shard.Options{&a.Redis, a.Rates} {
		if o != nil {
			fmt.Fprintf(hash, "%q %q %t %q %q %t %v %d %v %q %t\n", o.Addresses, o.Sentinel, o.Cluster, o.Username, o.Password,
				o.TLS, o.Timeout, o.ReplicaAcks, o.ReplicaAcksWait, o.Prefix, a.Embedded)
		}
	}
	for i, k := range a.Keys {
		jwk, _ := k.PublicJWK()
		keys[i] = shard.Key{KID: k.KID(), JWK: string(jwk), Seal: [32]byte(k.Derive("stockgate identity secret"))}
		fmt.Fprintln(hash, k.KID())
	}
	key = hex.EncodeToString(hash.Sum(nil))
	v, _, err := edgeRuntimes.LoadOrNew(key, func() (caddy.Destructor, error) {
		return start(a, keys)
	})
	if err != nil {
		return "", nil, err
	}
	return key, v.(*Runtime), nil
}

// Close gives a desk back to the pool.
func Close(key string) error {
	_, err := edgeRuntimes.Delete(key)
	return err
}

func start(a *Options, keys []shard.Key) (*Runtime, error) {
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
	store, err := reservation.Open(o)
	if err != nil {
		return nil, err
	}
	// Rates have connections of their own even on the same Redis: a rush of attempts
	// must not take those by which stock is held and settled.
	ratesAt := o
	if a.Rates != nil {
		ratesAt = *a.Rates
	}
	rates, err := shard.Open(ratesAt)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	d := &Runtime{
		Edge:     edge.New(store, edge.Options{Keys: keys, Log: a.Log, Metrics: meter.Edge{}, Rates: rates}),
		embedded: a.Embedded, log: a.Log,
	}
	d.Start()
	// A Redis that answers is known at once, so that a reload to another one does not
	// turn buyers away; one that does not answer holds nobody up.
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	_ = d.Refresh(ctx) // said in the log and by Ready
	return d, nil
}

// Destruct closes the desk when its last attempt has ended. Only an exiting process
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

// close waits for the attempts in flight, at most so long, then stops the edge.
func (d *Runtime) close(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if left := d.inFlight.close(ctx); left > 0 {
		d.log.Error("stopping with attempts in flight: they will be in doubt", zap.Int("attempts", left))
	}
	drain, cancelDrain := context.WithTimeout(context.Background(), grace)
	defer cancelDrain()
	err := d.Stop(drain)
	if d.embedded {
		if _, e := embeddedServers.Delete(embeddedKey); err == nil {
			err = e
		}
	}
	return err
}

// embeddedServer closes with its last user.
type embeddedServer struct{ *embedded.Server }

func (s embeddedServer) Destruct() error { return s.Close() }

// Begin says whether the desk still serves, for a request that needs it until end. A request of
// an old configuration may come when the desk has closed, and its outcome could not be told.
func (d *Runtime) Begin() bool { return d.inFlight.begin() }

// End is called once for each begin that was true.
func (d *Runtime) End() { d.inFlight.end() }

// IsLocal says that the stock is in the embedded server: it sells to this machine alone.
func (d *Runtime) IsLocal() bool { return d.embedded }

// InFlight is how many requests need the desk.
func (d *Runtime) InFlight() int {
	d.inFlight.mu.Lock()
	defer d.inFlight.mu.Unlock()
	return d.inFlight.n
}

// Shut lets no more requests begin, as the end of the last configuration does.
func (d *Runtime) Shut() {
	d.inFlight.mu.Lock()
	defer d.inFlight.mu.Unlock()
	d.inFlight.closed = true
}

// Wait returns when no request needs the desk, or ctx ends.
func (d *Runtime) Wait(ctx context.Context) { d.inFlight.wait(ctx) }

// flights counts attempts that need the desk.
type inFlightCounter struct {
	mu     sync.Mutex
	n      int
	idle   chan struct{} // closed when n comes to 0; nil: nobody waits
	closed bool          // no more begin
}

// begin says whether the desk still serves. A request of an old configuration may
// come this far when the desk has closed, and nobody would tell its outcome.
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

// close is wait, and no more begin after it.
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

// wait returns when there are none, or ctx ends; it returns how many are left.
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

// Listing finds a sale, also one that this edge has not heard of yet.
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

// NoSale names the sale that is not there.
func NoSale(id string, err error) error {
	if errors.Is(err, shard.ErrNoSale) {
		return fmt.Errorf("%w: %s", err, id)
	}
	return err
}
