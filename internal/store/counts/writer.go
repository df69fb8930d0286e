package counts

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// repeatAfter is when counts are written again although nothing has changed: an edge is heard so.
	repeatAfter = 25 * time.Second
	// tries is how often a round writes the counts of a sale that Redis did not take as they were.
	tries = 3
)

// Writer writes the counts of this process. It outlives reloads, as the counters do.
type Writer struct {
	started time.Time

	mu      sync.Mutex // one round at a time
	version int64
	sales   map[string]*written
}

// NewWriter makes a Writer of counters that are all 0 now.
func NewWriter() *Writer { return &Writer{started: time.Now(), sales: make(map[string]*written)} }

// Round is what a Writer writes at a time.
type Round struct {
	Client *shard.Client
	Edge   string // the edge's id, which begins with the name of its machine
	Ready  bool   // the edge may sell
	Last   bool   // the process stops
	Sales  []Counted
	// All are the counters of this process by sale; empty: of attempts that led to no sale.
	All map[string]Counters
}

// Counted is a sale of which this process counts.
type Counted struct {
	Sale  string
	Sells bool // it is on sale now: attempts that lead to no sale count as its own
	Live  bool // it is no draft and not over: its edges say that they live
}

// written is what this process knows of its counts in one sale.
type written struct {
	process string
	known   bool  // Redis has a write of the process
	epoch   int64 // of the sale, at the last write
	full    bool  // Redis has no room for the process

	base     Counters // what does not count: it is in the sums already, or was counted of a sale that was deleted
	around   Counters // attempts that led to no sale before this one sold
	noSale   Counters // those since
	sold     bool
	last     snapshot // that Redis has
	at       time.Time
	open     *snapshot // that was sent without an answer; no newer one is sent before it has one
	total    int64     // attempts in the last round
	lookedAt time.Time
	rate     int64 // attempts a minute since the round before
}

// snapshot is what is written.
type snapshot struct {
	version   int64
	counters  Counters // base included
	perMinute int64
	ready     bool
	ended     bool
}

// Write makes a round. It returns the sales in which Redis has no room for this process, and why others
// could not be written.
func (w *Writer) Write(ctx context.Context, r *Round) (full []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, c := range r.Sales {
		w.of(c.Sale).look(now, c, r)
	}
	due := r.Sales
	for range tries {
		if due, err = w.send(ctx, now, r, due); len(due) == 0 || err != nil {
			break
		}
	}
	for _, c := range r.Sales {
		if w.of(c.Sale).full {
			full = append(full, c.Sale)
		}
	}
	return full, err
}

func (w *Writer) of(sale string) *written {
	s := w.sales[sale]
	if s == nil {
		s = &written{process: rand.Text()}
		w.sales[sale] = s
	}
	return s
}

// look takes in what has been counted.
func (s *written) look(now time.Time, c Counted, r *Round) {
	switch noSale := r.All[""]; {
	case c.Sells:
		s.sold, s.noSale = true, noSale.minus(s.around)
	case !s.sold:
		s.around = noSale
	default: // paused or over: those that come meanwhile do not count
		s.around = noSale.minus(s.noSale)
	}
	total := r.All[c.Sale].Total() + s.noSale.Total()
	if passed := now.Sub(s.lookedAt); !s.lookedAt.IsZero() && passed > 0 {
		s.rate = int64(float64(total-s.total) * float64(time.Minute) / float64(passed))
	}
	s.total, s.lookedAt = total, now
}

// take returns what is to be written; nil: nothing is.
func (w *Writer) take(now time.Time, s *written, c Counted, r *Round) *snapshot {
	next := &snapshot{counters: make(Counters), perMinute: s.rate, ready: r.Ready, ended: r.Last}
	next.counters.add(r.All[c.Sale])
	next.counters.add(s.noSale)
	changed := !maps.Equal(next.counters, s.last.counters)
	told := next.ready == s.last.ready && next.ended == s.last.ended && (next.perMinute != 0 || s.last.perMinute == 0)
	recent := now.Sub(s.at) < repeatAfter
	switch {
	case s.full && recent:
		return nil
	case !s.known && (c.Live || len(next.counters.minus(s.base)) > 0):
	case changed && s.known:
	case !c.Live || told && recent:
		return nil
	}
	w.version++
	next.version = w.version
	return next
}

// send writes the counts of some sales as far as there is something to write, and returns the sales whose counts
// Redis did not take as they were.
func (w *Writer) send(ctx context.Context, now time.Time, r *Round, sales []Counted) (again []Counted, err error) {
	var due []Counted
	var calls []shard.ScriptCall
	name := nameOf(r.Edge)
	for _, c := range sales {
		s := w.of(c.Sale)
		if s.open == nil {
			s.open = w.take(now, s, c, r)
		}
		if s.open == nil {
			continue
		}
		about := strings.Join([]string{strconv.FormatInt(w.started.UnixMilli(), 10), flag(s.open.ended), flag(s.open.ready), strconv.FormatInt(max(0, s.open.perMinute), 10), word(r.Edge), name}, " ")
		due = append(due, c)
		calls = append(calls, r.Client.CallOf(lua.NoteCounts, r.Client.CountsKeys(c.Sale),
			[]any{lua.Schema, s.process, flag(s.known), s.open.version, about, name, s.open.counters.minus(s.base).text()}))
	}
	if len(due) == 0 {
		return nil, nil
	}
	for i, e := range r.Client.EvalEach(ctx, calls...) {
		took, failed := w.of(due[i].Sale).hear(ctx, now, r.Client, due[i].Sale, e)
		if !took && failed == nil {
			again = append(again, due[i])
		}
		err = errors.Join(err, failed)
	}
	return again, err
}

// hear takes in the answer to a write; false: it is to be written once more in another way.
func (s *written) hear(ctx context.Context, now time.Time, c *shard.Client, sale string, e shard.Evaluated) (took bool, err error) {
	if e.Err != nil {
		return false, e.Err // the same is sent again in the next round
	}
	sent, reply := s.open, shard.Reply(e.Raw)
	s.open, s.full = nil, false
	switch reply.Code() {
	case lua.OK:
		s.last, s.at, s.known, s.epoch = *sent, now, true, reply.Number(1)
	case lua.Folded:
		s.base = s.last.counters
		if reply.Number(1) == sent.version {
			s.base = sent.counters
		}
		s.last, s.known, s.process = snapshot{counters: s.base}, false, rand.Text()
		return false, nil
	case lua.Gone:
		deleted, err := c.ReloadedEpoch(ctx, sale)
		if err != nil {
			return false, err
		}
		if deleted >= s.epoch { // else Redis has lost it
			s.base = s.last.counters
		}
		s.known = false
		return false, nil
	case lua.QueueFull:
		s.full, s.at = true, now
	}
	return true, nil
}

// nameOf is the name of an edge's machine.
func nameOf(edge string) string {
	if i := strings.LastIndexByte(edge, '-'); i > 0 {
		edge = edge[:i]
	}
	return word(edge)
}

// word is a text as one word.
func word(text string) string {
	return cmp.Or(strings.Join(strings.Fields(text), "-"), "edge")
}

func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}
