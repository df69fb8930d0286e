// Package bookcache keeps the books of the sales in memory, so that reading them costs Redis
// little however often they are asked for.
package bookcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

const (
	// booksEvery is how old the books of a sale that is read quickly may be before they are
	// read again, and when a reading that failed is tried again.
	overviewReadEvery = time.Second
	// booksShare keeps the reading of all sales to a twentieth of the time, but for what a
	// shelf bounds this by.
	overviewReadShare = 20
	// booksBusy is for how long a sale that was read counts among those.
	overviewBusyFor = time.Minute
	// booksKept is how long books stay good after it was time to read them again, when
	// Redis does not answer.
	overviewStaleFor = 5 * time.Second
	// linesWithin bounds the reading of what cells stand for.
	linesWithin = 2 * time.Second
)

// ErrOld: the books could not be read for some time.
var ErrOld = errors.New("redis has not told the stock for some time")

// Cache keeps the books of a desk's sales in memory: each is read at most once
// a second, large ones less often, by whoever asks first, for all that ask meanwhile.
type Cache struct {
	desk *edgeruntime.Runtime
	Options
	mu      sync.Mutex
	sales   map[string]*Overview
	reading singleflight.Group
}

// Options say what a cache keeps, and how old that may be.
type Options struct {
	Most    int           // cells of a sale that has more are not kept
	Lines   bool          // with the lines that cells stand for
	Longest time.Duration // of the pauses between two readings
}

// Books is what is known of one sale's books. It never changes.
type Overview struct {
	Overview *reservation.Overview  // nil: never read
	Cells    map[string]record.Cell // by stock cell; nil: too many
	lines    map[string]sale.Line   // what the cells stand for, if that is kept
	read     time.Time              // when books were read
	took     time.Duration          // how long that took
	good     time.Duration          // how long they count
	tried    time.Time              // when the last reading ended
	pause    time.Duration          // until the next one
	err      error                  // of the last one
}

// Of returns the shelf that place holds, a new one when it is another desk's.
func Of(place *atomic.Pointer[Cache], d *edgeruntime.Runtime, how Options) *Cache {
	for {
		b := place.Load()
		if b != nil && b.desk == d {
			return b
		}
		if fresh := (&Cache{desk: d, Options: how, sales: make(map[string]*Overview)}); place.CompareAndSwap(b, fresh) {
			return fresh
		}
	}
}

// Recent returns a sale's books without waiting for Redis, except when nobody has
// asked for so long that the last ones do not count any more. When Redis does not answer
// for some seconds it fails.
func (b *Cache) Recent(ctx context.Context, id string) (*Overview, error) {
	known := b.known(id)
	if known.fresh() {
		return known.usable()
	}
	flight := b.read(id)
	if s, err := known.usable(); err == nil {
		return s, nil
	}
	if known.err != nil && time.Since(known.tried) < overviewStaleFor {
		return nil, known.err // it is being tried again, but nobody waits for that
	}
	select {
	case <-flight:
		return b.known(id).usable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Latest returns a sale's books as new as possible: when Redis does not give them
// before ctx ends, the last that were read. False: there are none.
func (b *Cache) Latest(ctx context.Context, id string) (*Overview, bool) {
	known := b.known(id)
	if !known.fresh() {
		select {
		case <-b.read(id):
			known = b.known(id)
		case <-ctx.Done():
		}
	}
	return known, known.Overview != nil
}

// known returns what the shelf has; of an unknown sale nothing.
func (b *Cache) known(id string) *Overview {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.sales[id]; ok {
		return s
	}
	return new(Overview)
}

// fresh says that it is too early to read again.
func (s *Overview) fresh() bool { return time.Since(s.tried) < s.pause }

// usable returns the books unless they are too old.
func (s *Overview) usable() (*Overview, error) {
	switch {
	case s.Overview != nil && time.Since(s.read) < s.good:
		return s, nil
	case s.err != nil:
		return nil, s.err
	}
	return nil, ErrOld
}

// read begins to read a sale's books, unless somebody does already. The channel
// tells when that has ended.
func (b *Cache) read(id string) <-chan singleflight.Result {
	return b.reading.DoChan(id, func() (any, error) {
		next := *b.known(id)
		started := time.Now()
		cells := make(map[string]record.Cell)
		var lines map[string]sale.Line
		books, err := b.desk.Store.Overview(context.Background(), id, func(name string, c record.Cell) {
			if len(cells) <= b.Most {
				cells[name] = c
			}
		})
		if len(cells) > b.Most {
			cells = nil
		} else if err == nil && b.Lines {
			ctx, cancel := context.WithTimeout(context.Background(), linesWithin)
			lines, err = b.desk.Store.Lines(ctx, id)
			cancel()
		}
		next.tried, next.err = time.Now(), err
		if err == nil {
			next.Overview, next.Cells, next.lines, next.read, next.took = books, cells, lines, next.tried, next.tried.Sub(started)
		}
		b.put(id, &next)
		return nil, nil
	})
}

// put keeps a sale's books, and forgets those of sales that are gone.
func (b *Cache) put(id string, s *Overview) {
	catalogue := b.desk.Catalogue()
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

// pace says when a sale's books are read again, and how long they count. What takes long
// is read less often, the less the more sales are being read.
func (b *Cache) pace(s *Overview) {
	if s.err != nil {
		s.pause = overviewReadEvery
		return
	}
	busy := 0
	for _, other := range b.sales {
		if time.Since(other.tried) < overviewBusyFor {
			busy++
		}
	}
	s.pause = min(max(overviewReadEvery, time.Duration(overviewReadShare*busy)*s.took), b.Longest)
	s.good = s.pause + overviewStaleFor
}

// Again reads a sale's books though their time has not come, if the last reading is not
// of just now: the sale has changed.
func (b *Cache) Again(id string) {
	if time.Since(b.known(id).tried) >= overviewReadEvery {
		b.read(id)
	}
}

// Reported are the cells as they are reported: each, or their sum if they are many.
func (s *Overview) Reported() []record.Cell {
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
