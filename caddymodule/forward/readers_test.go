package forward_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

// cutWriter notes that its client is cut off.
type cutWriter struct {
	http.ResponseWriter
	cuts int
}

func (w *cutWriter) SetWriteDeadline(time.Time) error { w.cuts++; return nil }

// closedConn notes that it is closed.
type closedConn struct {
	net.Conn
	closed bool
}

func (c *closedConn) Close() error { c.closed = true; return nil }

// Above the bound, the client that has read nothing for the longest time is cut off. A
// client that has read within the last second is not; if all have, the gate is full.
func TestReadersCutTheLongestStalled(t *testing.T) {
	now := time.Second
	rs := forward.NewReaders(1, func() time.Duration { return now }, zap.NewNop())
	var all []*forward.Reader
	var writers []*cutWriter
	var conns []*closedConn
	join := func() {
		w, c := new(cutWriter), new(closedConn)
		writers, conns = append(writers, w), append(conns, c)
		all = append(all, rs.Join(w, c))
	}
	cut := func(want ...int) {
		t.Helper()
		for i, w := range writers {
			n := 0
			if i < len(want) {
				n = want[i]
			}
			if w.cuts != n {
				t.Errorf("client %d was cut off %d times, want %d", i, w.cuts, n)
			}
		}
	}
	for range 4 {
		join()
	}
	if !rs.Full() {
		t.Error("four clients are what one in-flight slot allows, and none has stalled")
	}
	rs.Wait(all[2])
	now += 10 * time.Millisecond
	rs.Wait(all[1])
	rs.Wait(all[0])
	now += 999 * time.Millisecond
	rs.Took(all[0]) // it has read a piece
	rs.Wait(all[0])
	if rs.Full() {
		t.Error("a client has stalled: there is room")
	}
	join()
	cut(0, 0, 1)
	now += 10 * time.Millisecond
	join() // the first client that was cut off has not left yet: it is cut off again, and so is the next one
	cut(0, 1, 2)
	rs.Leave(all[2])
	rs.Leave(all[2]) // a second leave does nothing
	rs.Leave(all[1])
	cut(0, 1, 2)
	if rs.Full() != true {
		t.Error("four are left, and none has stalled for a second")
	}
	rs.Leave(all[3])
	if rs.Full() {
		t.Error("three are left")
	}
	for i, c := range conns {
		if c.closed {
			t.Errorf("the connection of client %d was closed", i)
		}
	}
}

// If a connection does not take the end of its answers either, it is closed.
func TestReadersCloseAStalledConnection(t *testing.T) {
	now := time.Second
	rs := forward.NewReaders(1, func() time.Duration { return now }, zap.NewNop())
	w, conn := new(cutWriter), new(closedConn)
	stalled := rs.Join(w, conn)
	rs.Wait(stalled)
	for range 3 {
		rs.Join(new(cutWriter), nil)
	}
	now += time.Second
	rs.Join(new(cutWriter), nil)
	if w.cuts != 1 || conn.closed {
		t.Errorf("at first: cut off %d times, closed %t", w.cuts, conn.closed)
	}
	now += time.Second
	rs.Join(new(cutWriter), nil)
	if w.cuts != 1 || !conn.closed {
		t.Errorf("a second later: cut off %d times, closed %t", w.cuts, conn.closed)
	}
}

// Each client that is cut off is counted once. The log reports them at most once a minute.
func TestReadersCutOffAreSaid(t *testing.T) {
	now := time.Second
	core, log := observer.New(zap.InfoLevel)
	rs := forward.NewReaders(1, func() time.Duration { return now }, zap.New(core))
	before := counted(t, "stockgate_cut_readers_total")
	var stalled []*forward.Reader
	for range 8 {
		r := rs.Join(new(cutWriter), nil)
		rs.Wait(r)
		stalled = append(stalled, r)
		now += time.Second
	}
	if got := counted(t, "stockgate_cut_readers_total") - before; got != 4 {
		t.Errorf("%v clients were counted, 4 were cut off", got)
	}
	for _, r := range stalled[:4] {
		rs.Leave(r)
	}
	now += time.Minute
	rs.Join(new(cutWriter), nil)
	var said []int64
	for _, e := range log.All() {
		said = append(said, e.ContextMap()["clients"].(int64))
	}
	if len(said) != 2 || said[0] != 1 || said[1] != 4 {
		t.Errorf("the log told of %v clients, want 1 and then 4", said)
	}
}

// counted is what a counter without labels says.
func counted(t *testing.T, name string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := meter.Register(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
