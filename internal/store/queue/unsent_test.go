package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// unsent says that the first turn of r2 was not used, and waits until Redis has heard it.
func (s *shop) unsent() {
	s.t.Helper()
	packed, err := s.queue.Pack("s", "r2", &queue.Order{Gate: "gate"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.queue.Unsent(queue.Turn{Sale: "s", ID: "r2", Try: 1}, packed, time.Hour, time.Minute)
	stocktest.Eventually(s.t, "an order that waits on", func() bool {
		p := s.place("r2")
		return p.State == record.Waiting && p.Number == 1
	})
}

// An edge hears nothing of its send, which Redis has done, and does not send the order: it waits on at
// the head of the line, and is sent with its next turn.
func TestUnsent(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	direct := quiet(t, "A", stocktest.Selling(t, stocktest.Options(s), 10), one)
	a := quiet(t, "A", stocktest.Ready(t, stocktest.At(proxy.Addr(), stocktest.Long)), one)
	direct.line("r1", "r2", "r3")
	direct.confirm("r1")
	direct.gets("A", "r2 1")
	proxy.CutReplies(3, "EVALSHA send")
	if err := a.send("r2", 1); err == nil || errors.Is(err, queue.ErrNotYours) {
		t.Fatalf("a send without an answer: %v", err)
	}
	if n := proxy.CutsLeft(); n > 0 || direct.state("r2") != record.Held || direct.place("r2").State != record.Held {
		t.Fatalf("%d replies were not cut, r2 is %s", n, direct.state("r2"))
	}
	a.unsent()
	if err := direct.send("r2", 1); !errors.Is(err, queue.ErrNotYours) {
		t.Errorf("it is sent with the turn that was given up: %v", err)
	}
	direct.gets("A", "r2 2")
	direct.mustSend("r2", 2)
	direct.confirm("r2")
	direct.gets("A", "r3 1")
	direct.mustSend("r3", 1)
	direct.confirm("r3")
	direct.balanced(s, 0, 0)
}

// Redis hears a send only after the edge has given its turn up, and has got the next one: it does not count.
func TestLateSendOfWhatWasUnsent(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	direct := quiet(t, "A", stocktest.Selling(t, stocktest.Options(s), 10), one)
	net := &stocktest.Network{Addr: proxy.Addr()}
	o := stocktest.At(proxy.Addr(), stocktest.Long)
	o.Dialer = net.Dial
	a := quiet(t, "A", stocktest.Ready(t, o), one)
	direct.line("r1", "r2")
	direct.confirm("r1")
	direct.gets("A", "r2 1")
	proxy.HoldRequests("EVALSHA send")
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := a.queue.Send(ctx, queue.Turn{Sale: "s", ID: "r2", Try: 1}, time.Hour, time.Minute, record.ModeResponse)
		sent <- err
	}()
	if err := proxy.WaitHeld(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	net.Cut() // the proxy has read the request, and Redis gets it all the same
	if err := <-sent; err == nil || errors.Is(err, queue.ErrNotYours) {
		t.Fatalf("a send that did not arrive: %v", err)
	}
	net.Lead(proxy.Addr())
	a.unsent()
	direct.gets("A", "r2 2")
	proxy.ReleaseRequests()
	if err := proxy.WaitIdle(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	if p := direct.place("r2"); p.State != record.Waiting {
		t.Errorf("r2 is %+v: the late send counts", p)
	}
	direct.mustSend("r2", 2)
	direct.confirm("r2")
	direct.balanced(s, 0, 0)
}
