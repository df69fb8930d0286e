package notify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/notices"
)

// maxDirect is how many notices of one edge wait in its memory.
const maxDirect = 20

// Direct sends what an edge has to say while Redis is away, from memory. It is safe for concurrent use.
type Direct struct {
	Receiver *Receiver
	Metrics  Metrics
	Retry    Retry
	// Edge names the edge in the ids of messages.
	Edge string

	mu    sync.Mutex
	waits []notices.Notice
	seq   int64
	lost  int64
	wake  chan struct{}
}

// NewDirect makes a Direct, which sends nothing before Run.
func NewDirect(r *Receiver, m Metrics, retry Retry, edge string) *Direct {
	return &Direct{Receiver: r, Metrics: m, Retry: retry, Edge: edge, wake: make(chan struct{}, 1)}
}

// Tell adds a notice. Of too many, the oldest make room.
func (d *Direct) Tell(n notices.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	n.Seq, n.At = d.seq, time.Now().UTC().Truncate(time.Millisecond)
	d.waits = append(d.waits, n)
	if over := len(d.waits) - maxDirect; over > 0 {
		d.waits, d.lost = d.waits[over:], d.lost+int64(over)
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends.
func (d *Direct) Run(ctx context.Context) {
	for pause := time.Duration(0); ctx.Err() == nil; {
		m := d.take()
		if m == nil {
			loop.Rest(ctx, time.Hour, d.wake)
			continue
		}
		a := d.Receiver.Post(ctx, m)
		d.Metrics.NoticePosted(a.Class())
		if a.Accepted() || unreadable(a.Status) {
			d.drop(m, a.Accepted())
			pause = 0
			continue
		}
		pause = d.Retry.next(pause)
		loop.Rest(ctx, max(pause/2+rand.N(pause/2+1), a.After), nil)
	}
}

// take is the next message.
func (d *Direct) take() *notices.Digest {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.waits) == 0 {
		return nil
	}
	some := append([]notices.Notice(nil), d.waits[:min(len(d.waits), 5)]...)
	return &notices.Digest{ID: fmt.Sprintf("ntc_%s_%d_%d", d.Edge, some[0].Seq, len(some)), Notices: some, Lost: d.lost}
}

// drop drops what the receiver has, or cannot read, as far as newer notices have not displaced it.
func (d *Direct) drop(m *notices.Digest, taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := m.Notices[len(m.Notices)-1].Seq
	n := len(d.waits)
	for len(d.waits) > 0 && d.waits[0].Seq <= last {
		d.waits = d.waits[1:]
	}
	d.lost = max(d.lost-m.Lost, 0)
	if taken {
		d.Metrics.NoticesSent(n - len(d.waits))
	} else {
		d.Metrics.NoticesLost(int64(n - len(d.waits)))
	}
}
