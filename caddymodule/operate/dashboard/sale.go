package dashboard

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// movementsAtOnce is how many movements are read at a time, and movementsPages how many
	// times at one look: after more of them all cells are read.
	movementsAtOnce, movementsPages = 2_000, 4
	// scanEvery is how often all cells are read although the journal tells what moves, and
	// scanShare bounds the time that this takes.
	scanEvery, scanShare = time.Minute, 100
	// logStart is how many movements before the first look are searched for actions.
	logStart = 2_000
	// moverHalf is the half-life of what counts as moving.
	moverHalf = 5 * time.Second
)

// item is a stock cell as the page knows it.
type item struct {
	record.Cell
	order int    // in the sale; -1: the sale does not list it
	key   string // what a search finds, in lower case
	// score is how many units buyers took lately: it halves every moverHalf. at is when it
	// was so.
	score float64
	at    time.Time
	flow  flow
	gone  time.Time // when its last unit was taken; zero: it was not, or that is not known
}

func newItem(sku, region string, order int) *item {
	return &item{Cell: record.Cell{SKU: sku, Region: region}, order: order, key: strings.ToLower(sku + "\n" + region)}
}

// moving returns the item's score at a moment.
func (i *item) moving(now time.Time) float64 {
	return i.score * math.Exp2(-now.Sub(i.at).Seconds()/moverHalf.Seconds())
}

// saleReader knows the stock of a sale. It reads the movements since its last look from the
// journal, and then the cells that they touched: what it shows is what Redis has.
type saleReader struct {
	id   string
	busy atomic.Bool // a look is under way

	// only the goroutine of look uses these
	lines   map[string]sale.Line
	version int64 // of lines
	scanned time.Time
	took    time.Duration
	noted   int64 // the last movement that the log has seen

	mu       sync.Mutex
	tried    time.Time
	read     time.Time // when Redis last answered; zero: never
	items    map[string]*item
	inOrder  []*item // those of items, in the order of the sale, at the last scan
	sum      record.Cell
	odd      map[string]bool // cells that do not balance
	epoch    int64
	seq      int64
	head     journal.Head
	over     *reservation.Overview
	line     *queue.State // nil: the sale has no queue
	acts     []actFrame
	waits    *waitlistFrame // nil: the sale has no waiting list, or this edge does not follow it
	history  points
	log      actions
	recent   map[string]*item // those that moved lately
	sums     sums
	regions  map[string]*region
	failures failures
}

func newSaleReader(id string) *saleReader {
	return &saleReader{id: id, odd: make(map[string]bool), recent: make(map[string]*item)}
}

// look reads what is new. Where Redis does not answer, read stays as it is and the page says
// how old the numbers are.
func (s *saleReader) look(ctx context.Context, d *edgeruntime.Runtime, l *edge.Listing) {
	started := time.Now()
	err := s.follow(ctx, d, l)
	var line *queue.State
	var acts []actFrame
	var waits *waitlistFrame
	if err == nil {
		line, err = queue.Look(ctx, d.Store, s.id)
	}
	if err == nil {
		acts, err = scheduled(ctx, d, l)
	}
	if err == nil {
		waits, err = onList(ctx, d, l)
	}
	if err == nil {
		_ = s.sumUp(ctx, d) // the page says how old they are
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried = time.Now(); err == nil {
		s.read, s.line, s.acts, s.waits = started, line, acts, waits
	}
}

func (s *saleReader) lastTried() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// sample adds a point to the charts, once a second. Stock is unknown that Redis has not told
// for so long.
func (s *saleReader) sample(now time.Time, unknown time.Duration, c *counter, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(now, ready)
	if at := now.UnixMilli(); !s.read.IsZero() && s.history.due(at) {
		s.history.add(s.point(at, now.Sub(s.read) < unknown, c))
	}
}

// follow reads the movements and the cells that they touched, or all cells.
func (s *saleReader) follow(ctx context.Context, d *edgeruntime.Runtime, l *edge.Listing) error {
	if l.Lost() {
		return shard.ErrNoSale
	}
	if s.lines == nil || s.version != l.Version {
		s.lines, s.version, s.scanned = l.Sale.Lines(), l.Version, time.Time{}
	}
	head, err := d.Store.Journal().Head(ctx, s.id)
	if err != nil {
		return err
	}
	due := max(scanEvery, scanShare*s.took)
	if s.items == nil || head.Epoch != s.epoch || head.Last < s.seq || time.Since(s.scanned) >= due {
		return s.scan(ctx, d, l, head)
	}
	touched := make(map[string]bool)
	seq := s.seq
	for range movementsPages {
		movements, err := d.Store.Journal().Movements(ctx, s.id, seq, movementsAtOnce)
		if _, gap := errors.AsType[*journal.GapError](err); gap {
			return s.scan(ctx, d, l, head)
		}
		if err != nil {
			return err
		}
		s.note(movements)
		for i := range movements {
			seq = movements[i].Seq
			switch movements[i].Kind {
			case "repaired", "rebuilt", "missing": // they may touch any cell
				return s.scan(ctx, d, l, head)
			}
			for _, line := range movements[i].Lines {
				touched[line.Cell] = true
			}
		}
		if len(movements) < movementsAtOnce {
			return s.fetch(ctx, d, touched, seq, head)
		}
	}
	return s.scan(ctx, d, l, head)
}

// note adds to the log what operators did, each movement once.
func (s *saleReader) note(movements []journal.Movement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range movements {
		if movements[i].Seq > s.noted {
			s.log.add(&movements[i])
			s.noted = movements[i].Seq
		}
	}
}

// catchUp notes the newest movements before all cells are read.
func (s *saleReader) catchUp(ctx context.Context, d *edgeruntime.Runtime, head journal.Head) {
	if head.Epoch != s.epoch {
		s.noted = 0 // the numbers start over
	}
	if from := max(s.noted, head.First-1, head.Last-logStart); from < head.Last {
		if last, err := d.Store.Journal().Movements(ctx, s.id, from, logStart); err == nil {
			s.note(last)
		}
	}
}

// point returns what the charts show of this moment.
func (s *saleReader) point(at int64, known bool, c *counter) point {
	p := point{at: at}
	now, past := c.last()
	p.values[0], p.values[1], p.values[2], p.values[3] = float64(s.sum.Confirmed), float64(s.sum.InDoubt), float64(s.sum.Held), float64(s.sum.Available)
	if !known {
		for i := range 4 {
			p.values[i] = math.NaN()
		}
	}
	rates := s.sums.rates(now.since(past, s.id))
	copy(p.values[4:], rates[:])
	p.values[4+classes] = now.reserves(past, 0.5)
	p.values[5+classes] = now.reserves(past, 0.99)
	return p
}
