package reservation_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/reservation"
)

// network is what an edge dials: a proxy, the server itself, or nothing.
type network struct {
	mu    sync.Mutex
	addr  string // empty: nothing answers
	conns []net.Conn
}

// lead makes the edge dial addr from now on.
func (n *network) lead(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addr = addr
}

// cut ends the edge's side of every connection, and refuses new ones.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addr = ""
	for _, c := range n.conns {
		c.Close()
	}
}

func (n *network) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	n.mu.Lock()
	addr := n.addr
	n.mu.Unlock()
	if addr == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, c)
	return c, nil
}

// faulty is an edge, not started, that sells 3 units of "a" behind a proxy that
// will misbehave.
type faulty struct {
	t      *testing.T
	server *redistest.Server
	proxy  *redistest.Proxy
	net    *network
	edge   *reservation.Edge
	direct *reservation.Store // to the server, past the proxy
}

func newFaulty(t *testing.T, timeout time.Duration) *faulty {
	s := redistest.Start(t)
	f := &faulty{t: t, server: s, proxy: redistest.NewProxy(t, s.Addr()), direct: openStore(t, options(s))}
	f.net = &network{addr: f.proxy.Addr()}
	load(t, f.direct, openSale("s", 3, perBuyer(2)))
	o := at(f.proxy.Addr(), timeout)
	o.Dialer = f.net.dial
	f.edge = ready(t, o)
	// a connection for reserves: the handshake of a new one would not be the fault meant
	mustHold(t, f.edge, "first", "Ann", 1)
	if _, err := f.edge.ReleaseEventually(soon(t), "s", "first", reservation.Unsent, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

// audit checks the books.
func (f *faulty) audit() *raw {
	f.t.Helper()
	return balanced(f.t, f.server.Client(), f.direct, "s")
}

// nothingHeld checks that all units are available and no limit is charged.
func (f *faulty) nothingHeld() {
	f.t.Helper()
	r := f.audit()
	if c := cellA(f.t, f.direct); c.Available != c.Stock || len(r.limits) > 0 {
		f.t.Errorf("the cell is %+v, the limits are %v: want nothing held", c, r.limits)
	}
}

// told starts the edge and waits until Redis knows everything.
func (f *faulty) told() {
	f.t.Helper()
	f.edge.Start()
	eventually(f.t, "an empty backlog", func() bool { return f.edge.Backlog() == 0 })
}

// unanswered holds in the background, loses the connection once given says so, and
// returns when the edge has given up.
func (f *faulty) unanswered(id string, given func(context.Context) error) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(soon(f.t))
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, refusal, err := hold(context.Background(), f.edge, id, "Ann", 1)
		if refusal != nil {
			err = errors.New(string(refusal.Reason))
		}
		failed <- err
		cancel()
	}()
	if err := given(ctx); err != nil {
		f.net.cut()
		f.t.Fatalf("%v; the hold ended with %v", err, <-failed)
	}
	f.net.cut()
	if err := <-failed; !errors.Is(err, reservation.ErrUnavailable) {
		f.t.Fatalf("the hold fails with %v, want %v", err, reservation.ErrUnavailable)
	}
}
