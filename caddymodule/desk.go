package caddymodule

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

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/reservation/embedded"
	"github.com/stockgate/stockgate/token"
)

// grace is how long an exiting process waits for attempts in flight, and then for
// Redis to hear how they ended.
const grace = 10 * time.Second

// desk is the edge at work: one for all configurations with the same Redis and the
// same keys, so that a reload changes nothing for attempts in flight.
type desk struct {
	*reservation.Edge
	flights  flights
	embedded bool
	log      *zap.Logger
}

// desks are shared by the configurations that live at the same time.
var desks = caddy.NewUsagePool()

// embeddedServers has the one embedded server of this process, while it is used.
var embeddedServers = caddy.NewUsagePool()

const embeddedKey = "embedded"

// deskOptions say what a desk is of.
type deskOptions struct {
	redis    reservation.Options
	rates    *reservation.Options // of the Redis for shared rates; nil: redis
	embedded bool                 // redis is the embedded server
	keys     []token.Key          // that sign
	log      *zap.Logger
}

// openDesk takes the desk with these options from the pool, or starts it.
func openDesk(a *deskOptions) (key string, d *desk, err error) {
	keys := make([]reservation.Key, len(a.keys))
	hash := sha256.New()
	for _, o := range []*reservation.Options{&a.redis, a.rates} {
		if o != nil {
			fmt.Fprintf(hash, "%q %q %t %q %q %t %v %d %v %q %t\n", o.Addresses, o.Sentinel, o.Cluster, o.Username, o.Password,
				o.TLS, o.Timeout, o.ReplicaAcks, o.ReplicaAcksWait, o.Prefix, a.embedded)
		}
	}
	for i, k := range a.keys {
		jwk, _ := k.PublicJWK()
		keys[i] = reservation.Key{KID: k.KID(), JWK: string(jwk), Seal: [32]byte(k.Derive("stockgate identity secret"))}
		fmt.Fprintln(hash, k.KID())
	}
	key = hex.EncodeToString(hash.Sum(nil))
	v, _, err := desks.LoadOrNew(key, func() (caddy.Destructor, error) {
		return startDesk(a, keys)
	})
	if err != nil {
		return "", nil, err
	}
	return key, v.(*desk), nil
}

// closeDesk gives a desk back to the pool.
func closeDesk(key string) error {
	_, err := desks.Delete(key)
	return err
}

func startDesk(a *deskOptions, keys []reservation.Key) (*desk, error) {
	o := a.redis
	if a.embedded {
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
	if a.rates != nil {
		ratesAt = *a.rates
	}
	rates, err := reservation.Open(ratesAt)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	d := &desk{
		Edge:     reservation.NewEdge(store, reservation.EdgeOptions{Keys: keys, Log: a.log, Metrics: edgeMetrics{}, Rates: rates}),
		embedded: a.embedded, log: a.log,
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
func (d *desk) Destruct() error {
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
func (d *desk) close(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if left := d.flights.close(ctx); left > 0 {
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

// begin says whether the desk still serves, for a request that needs it until end. A request of
// an old configuration may come when the desk has closed, and nobody would tell its outcome.
func (d *desk) begin() bool { return d.flights.begin() }

// end is called once for each begin that was true.
func (d *desk) end() { d.flights.end() }

// isLocal says that the stock is in the embedded server: it sells to this machine alone.
func (d *desk) isLocal() bool { return d.embedded }

// wait returns when no request needs the desk, or ctx ends.
func (d *desk) wait(ctx context.Context) { d.flights.wait(ctx) }

// flights counts attempts that need the desk.
type flights struct {
	mu     sync.Mutex
	n      int
	idle   chan struct{} // closed when n comes to 0; nil: nobody waits
	closed bool          // no more begin
}

// begin says whether the desk still serves. A request of an old configuration may
// come this far when the desk has closed, and nobody would tell its outcome.
func (f *flights) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *flights) end() {
	f.mu.Lock()
	f.n--
	if f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
	f.mu.Unlock()
}

// close is wait, and no more begin after it.
func (f *flights) close(ctx context.Context) int {
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
func (f *flights) wait(ctx context.Context) int {
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

// listing finds a sale, also one that this edge has not heard of yet.
func (d *desk) listing(ctx context.Context, id string) (*reservation.Listing, error) {
	if l, ok := d.Catalogue().Sale(id); ok {
		return l, nil
	}
	if err := d.Refresh(ctx); err != nil {
		return nil, err
	}
	if l, ok := d.Catalogue().Sale(id); ok {
		return l, nil
	}
	return nil, noSale(id, reservation.ErrNoSale)
}

// noSale names the sale that is not there.
func noSale(id string, err error) error {
	if errors.Is(err, reservation.ErrNoSale) {
		return fmt.Errorf("%w: %s", err, id)
	}
	return err
}
