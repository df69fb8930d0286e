// Package overviewcache is the overview cache: it keeps the overviews of the sales in memory,
// so that status and metrics cost Redis little however often they are read.
package overviewcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// overviewReadShare limits the reads of all sales to a twentieth of the time, unless
	// Options.Longest is shorter than the resulting pause.
	overviewReadShare = 20
	// overviewBusyFor is how long a sale counts as busy after it was read.
	overviewBusyFor = time.Minute
	// overviewStaleFor is how long an overview stays usable after its next read was due,
	// while Redis does not answer.
	overviewStaleFor = 5 * time.Second
	// linesWithin bounds the time to read the lines that cells stand for, and that to read the
	// line of orders.
	linesWithin = 2 * time.Second
)

// ErrOld means that the overview could not be read for some time.
var ErrOld = errors.New("redis has not told the stock for some time")

// Cache keeps the overviews of one edge runtime's sales. Each is read at most once a
// second, large ones less often. The first caller starts the read, and callers that arrive
// in the meantime share it.
type Cache struct {
	runtime *edgeruntime.Runtime
	Options
	mu      sync.Mutex
	sales   map[string]*Cached
	reading singleflight.Group
}

// Options bound what a cache keeps and how old it may be.
type Options struct {
	Most    int           // the cells of a sale with more than that are not kept
	Lines   bool          // also keep the lines that cells stand for
	Least   time.Duration // pause between two reads; 0: a second
	Longest time.Duration // the same at most
	Queue   bool          // also read the lines of orders that wait
}

// Cached is the cached overview of one sale. It never changes.
type Cached struct {
	Overview *reservation.Overview  // nil: never read
	Cells    map[string]record.Cell // by name; nil: too many
	Queue    *queue.State           // with Options.Queue; nil: the sale has none
	lines    map[string]sale.Line   // what the cells stand for, with Options.Lines
	read     time.Time              // when the overview was read
	took     time.Duration          // duration of that read
	good     time.Duration          // how long after read it is usable
	tried    time.Time              // when the last read ended
	pause    time.Duration          // between tried and the next read
	err      error                  // of the last read
}

// Of returns the cache in place, or a new one if that belongs to another edge runtime.
func Of(place *atomic.Pointer[Cache], d *edgeruntime.Runtime, how Options) *Cache {
	for {
		b := place.Load()
		if b != nil && b.runtime == d {
			return b
		}
		if fresh := (&Cache{runtime: d, Options: how, sales: make(map[string]*Cached)}); place.CompareAndSwap(b, fresh) {
			return fresh
		}
	}
}

// Recent returns a sale's overview without waiting for Redis, unless the last one is too
// old because no caller has asked for a while. It fails when Redis has not answered for
// some seconds.
func (b *Cache) Recent(ctx context.Context, id string) (*Cached, error) {
	known := b.known(id)
	if known.fresh() {
		return known.usable()
	}
	flight := b.read(id, known)
	if s, err := known.usable(); err == nil {
		return s, nil
	}
	if known.err != nil && time.Since(known.tried) < overviewStaleFor {
		return nil, known.err // the retry is under way, but this caller does not wait for it
	}
	select {
	case <-flight:
		return b.known(id).usable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Latest returns a sale's overview as new as possible: the last one that was read, if Redis
// does not answer before ctx ends. False: there is none.
func (b *Cache) Latest(ctx context.Context, id string) (*Cached, bool) {
	known := b.known(id)
	if !known.fresh() {
		select {
		case <-b.read(id, known):
			known = b.known(id)
		case <-ctx.Done():
		}
	}
	return known, known.Overview != nil
}

// known returns the cached overview of a sale, or an empty one.
func (b *Cache) known(id string) *Cached {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.sales[id]; ok {
		return s
	}
	return new(Cached)
}

// fresh reports whether it is too early to read again.
func (s *Cached) fresh() bool { return time.Since(s.tried) < s.pause }

// usable returns the overview unless it is too old.
func (s *Cached) usable() (*Cached, error) {
	switch {
	case s.Overview != nil && time.Since(s.read) < s.good:
		return s, nil
	case s.err != nil:
		return nil, s.err
	}
	return nil, ErrOld
}

// read starts to read a sale's overview, unless a read is already running, or one has ended since the caller
// looked and saw seen. The channel receives when the read has ended.
func (b *Cache) read(id string, seen *Cached) <-chan singleflight.Result {
	return b.reading.DoChan(id, func() (any, error) {
		next := *b.known(id)
		if next.tried.After(seen.tried) && next.fresh() {
			return nil, nil
		}
		started := time.Now()
		cells := make(map[string]record.Cell)
		var lines map[string]sale.Line
		overview, err := b.runtime.Store.Overview(context.Background(), id, func(name string, c record.Cell) {
			if len(cells) <= b.Most {
				cells[name] = c
			}
		})
		if len(cells) > b.Most {
			cells = nil
		} else if err == nil && b.Lines {
			ctx, cancel := context.WithTimeout(context.Background(), linesWithin)
			lines, err = b.runtime.Store.Lines(ctx, id)
			cancel()
		}
		var line *queue.State
		if err == nil && b.Options.Queue {
			ctx, cancel := context.WithTimeout(context.Background(), linesWithin)
			line, err = queue.Look(ctx, b.runtime.Store, id)
			cancel()
		}
		next.tried, next.err = time.Now(), err
		if err == nil {
			next.Overview, next.Cells, next.Queue, next.lines, next.read, next.took = overview, cells, line, lines, next.tried, next.tried.Sub(started)
		}
		b.put(id, &next)
		return nil, nil
	})
}

// put caches a sale's overview, and drops those of sales that no longer exist.
func (b *Cache) put(id string, s *Cached) {
	catalogue := b.runtime.Catalogue()
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.sales {
		if _, ok := catalogue.Sale(other); !ok {
			delete(b.sales, other)
		}
	}
	b.sales[id] = s
	b.pace(s)
}

// pace sets when a sale's overview is read again, and how long it stays usable. The longer
// a read takes and the more sales are busy, the longer the pause.
func (b *Cache) pace(s *Cached) {
	if s.err != nil {
		s.pause = timing.Overview.Now()
		return
	}
	busy := 0
	for _, other := range b.sales {
		if time.Since(other.tried) < overviewBusyFor {
			busy++
		}
	}
	s.pause = min(max(timing.Overview.Now(), b.Least, time.Duration(overviewReadShare*busy)*s.took), b.Longest)
	s.good = s.pause + overviewStaleFor
}

// Again reads a sale that has changed before its next read is due, unless it was read just
// now.
func (b *Cache) Again(id string) {
	if known := b.known(id); time.Since(known.tried) >= timing.Overview.Now() {
		b.read(id, known)
	}
}

// Reported returns the cells to report: each of them, or their sum if there are too many.
func (s *Cached) Reported() []record.Cell {
	if s.Cells == nil {
		return []record.Cell{s.Overview.Sum}
	}
	cells := make([]record.Cell, 0, len(s.Cells))
	for name, c := range s.Cells {
		c.SKU = name
		if line, ok := s.lines[name]; ok {
			c.SKU, c.Region = line.SKU, line.Region
		}
		cells = append(cells, c)
	}
	return cells
}
