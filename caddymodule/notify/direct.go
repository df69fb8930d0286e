package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/notify"
	"github.com/stockgate/stockgate/internal/store/notices"
)

// silentFor is how long Redis may be away before an edge speaks for itself.
const silentFor = 5 * time.Second

// direct tells what is urgent while Redis is away, from memory. It ends each story that it has begun. Reloads share it.
type direct struct {
	key string
	*memory
	sender *notify.Direct
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// memory is what this process has told by itself.
type memory struct {
	mu sync.Mutex
	// told are the conditions that operators know from this edge alone, and since when. said are those that were
	// reported to the other edges.
	told map[string]begun
	said map[string]bool
	away time.Time // since when Redis does not take reports; zero: it does
}

type begun struct {
	condition
	at time.Time
}

// memories outlive a reload.
var memories = caddy.NewUsagePool()

// Destruct is called when no configuration uses it any more.
func (*memory) Destruct() error { return nil }

func openDirect(t *teller) *direct {
	key := t.runtime.Leases().ID()
	v, _, _ := memories.LoadOrNew(key, func() (caddy.Destructor, error) {
		return &memory{told: make(map[string]begun), said: make(map[string]bool)}, nil
	})
	d := &direct{key: key, memory: v.(*memory), sender: notify.NewDirect(t.receiver, meter.NoticeEvents{}, notify.Retry{}, key)}
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.done.Go(func() { d.sender.Run(ctx) })
	return d
}

func (d *direct) close() {
	d.stop()
	d.done.Wait()
	_, _ = memories.Delete(d.key)
}

// without is a report without what operators hear from this edge itself.
func (m *memory) without(r *report) *report {
	m.mu.Lock()
	defer m.mu.Unlock()
	other := *r
	other.Conditions = nil
	for _, c := range r.Conditions {
		if _, told := m.told[c.About]; !told && !c.alone {
			other.Conditions = append(other.Conditions, c)
		}
	}
	return &other
}

// hear tells what is urgent, if Redis has not taken reports for a while, and what is over of it.
func (d *direct) hear(t *teller, r *report, now time.Time, reported bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case reported:
		d.away = time.Time{}
		clear(d.said)
		for _, c := range r.Conditions {
			if _, told := d.told[c.About]; !told {
				d.said[c.About] = true
			}
		}
	case d.away.IsZero():
		d.away = now
	}
	names := abouts(r.Conditions)
	for about, b := range d.told {
		if _, on := slices.BinarySearch(names, about); !on {
			delete(d.told, about)
			d.sender.Tell(b.over(now))
		}
	}
	away := !reported && now.Sub(d.away) >= silentFor
	for _, c := range r.Conditions {
		if _, told := d.told[c.About]; !told && (c.alone || away && c.urgent && !d.said[c.About]) {
			d.told[c.About] = begun{c, now}
			d.sender.Tell(c.notice())
		}
	}
}

func (c *condition) notice() notices.Notice {
	return notices.Notice{Kind: c.Kind, Sale: c.Sale, State: c.State, Text: c.Text, Command: c.Command}
}

func (b *begun) over(now time.Time) notices.Notice {
	n := b.notice()
	n.Ended, n.Command, n.Text = true, "", after(b.Over, now.Sub(b.at))
	return n
}
