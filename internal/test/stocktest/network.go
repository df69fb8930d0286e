package stocktest

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Network is what an edge dials: a proxy, the server itself, or nothing.
type Network struct {
	mu    sync.Mutex
	Addr  string // empty: nothing answers
	conns []net.Conn
	cuts  int
}

// Lead makes the edge dial addr from now on.
func (n *Network) Lead(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Addr = addr
}

// Cut ends the edge's side of every connection, also of those that are being made, and refuses new
// ones.
func (n *Network) Cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Addr = ""
	n.cuts++
	for _, c := range n.conns {
		c.Close()
	}
}

func (n *Network) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	n.mu.Lock()
	addr, cuts := n.Addr, n.cuts
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	if addr == "" {
		return nil, refused
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cuts != cuts {
		c.Close()
		return nil, refused
	}
	n.conns = append(n.conns, c)
	return c, nil
}

// Faulty is an edge, not started, that sells 3 units of "a" behind a proxy that will misbehave.
type Faulty struct {
	T      *testing.T
	Server *redistest.Server
	Proxy  *redistest.Proxy
	Net    *Network
	Edge   *edge.Edge
	Direct *reservation.Store // to the server, past the proxy
}

func NewFaulty(t *testing.T, timeout time.Duration) *Faulty {
	s := redistest.Start(t)
	f := &Faulty{T: t, Server: s, Proxy: redistest.NewProxy(t, s.Addr()), Direct: OpenStore(t, Options(s))}
	f.Net = &Network{Addr: f.Proxy.Addr()}
	Load(t, f.Direct, OpenSale("s", 3, PerBuyer(2)))
	o := At(f.Proxy.Addr(), timeout)
	o.Dialer = f.Net.Dial
	f.Edge = Ready(t, o)
	// a connection for reserves: otherwise the fault would hit the handshake of a new one
	MustHold(t, f.Edge, "first", "Ann", 1)
	if _, err := f.Edge.ReleaseEventually(Soon(t), "s", "first", reservation.SourceUnsent, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

// Audit checks that the stock in Redis adds up.
func (f *Faulty) Audit() *Raw {
	f.T.Helper()
	return Balanced(f.T, f.Server.Client(), f.Direct, "s")
}

// NothingHeld checks that all units are available and no limit is charged.
func (f *Faulty) NothingHeld() {
	f.T.Helper()
	r := f.Audit()
	if c := CellA(f.T, f.Direct); c.Available != c.Stock || len(r.Limits) > 0 {
		f.T.Errorf("the cell is %+v, the limits are %v: want nothing held", c, r.Limits)
	}
}

// Told starts the edge and waits until it has reported everything to Redis.
func (f *Faulty) Told() {
	f.T.Helper()
	f.Edge.Start()
	Eventually(f.T, "an empty backlog", func() bool { return f.Edge.Backlog() == 0 })
}

// Unanswered reserves in the background, breaks the connection once given returns, and returns
// when the edge has given up.
func (f *Faulty) Unanswered(id string, given func(context.Context) error) {
	f.T.Helper()
	ctx, cancel := context.WithCancel(Soon(f.T))
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, refusal, err := Hold(context.Background(), f.Edge, id, "Ann", 1)
		if refusal != nil {
			err = errors.New(string(refusal.Reason))
		}
		failed <- err
		cancel()
	}()
	if err := given(ctx); err != nil {
		f.Net.Cut()
		f.T.Fatalf("%v; the hold ended with %v", err, <-failed)
	}
	f.Net.Cut()
	if err := <-failed; !errors.Is(err, shard.ErrUnavailable) {
		f.T.Fatalf("the hold fails with %v, want %v", err, shard.ErrUnavailable)
	}
}
