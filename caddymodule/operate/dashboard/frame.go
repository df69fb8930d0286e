package dashboard

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// shownSales and shownItems bound what a frame lists.
	shownSales, shownItems = 50, 10
	// paceOver is the time over which the pace of a sale is measured.
	paceOver = 10 * time.Second
)

// frame is what the page learns at a tick. It is encoded once for all viewers of a sale.
type frame struct {
	Now      int64         `json:"now"` // ms, of this machine
	Edge     edgeFrame     `json:"edge"`
	Sales    []saleSummary `json:"sales"`
	Sale     *saleFrame    `json:"sale,omitempty"`
	Redis    []redisState  `json:"redis"`
	Store    *storeFrame   `json:"store,omitempty"` // nil: Redis is not run by this process
	Alarms   []alarm       `json:"alarms"`
	Bypassed []string      `json:"bypassed,omitempty"` // a sentence for each bypass, of all edges
	Journal  journalFrame  `json:"journal"`
	Attempts attemptFrame  `json:"attempts"`
	Point    []*float64    `json:"point,omitempty"` // the newest, after its time in ms
}

type edgeFrame struct {
	Ready    bool   `json:"ready"`
	Why      string `json:"why,omitempty"`
	Backlog  int    `json:"backlog"`
	InFlight int    `json:"in_flight"`
	Queue    calls  `json:"queue"`
	Edges    int64  `json:"edges"`  // -1: unknown
	Silent   int    `json:"silent"` // edges that were not stopped and are not heard any more
	Viewers  int    `json:"viewers"`
}

// calls is what this edge has to ask Redis at the moment.
type calls struct {
	Waiting int `json:"waiting"` // requests that wait for a call
	Calls   int `json:"calls"`   // calls under way
	Sending int `json:"sending"` // the requests in them
}

type saleSummary struct {
	ID     string      `json:"id"`
	Status sale.Status `json:"status"`
	State  string      `json:"state"`
}

type saleFrame struct {
	saleSummary
	StartsAt   int64      `json:"starts_at"` // ms
	EndsAt     int64      `json:"ends_at"`
	Timezone   string     `json:"timezone"`       // of the sale: the page tells all times in it
	SaleNow    int64      `json:"sale_now"`       // Redis's time
	ReadAt     int64      `json:"read_at"`        // when Redis last told the stock, by Now; 0: never
	Items      int        `json:"items"`          // cells
	Stock      [5]int64   `json:"stock"`          // stock, available, held, in doubt, sold
	Balanced   bool       `json:"balanced"`       //
	Pace       float64    `json:"pace"`           // units a second that buyers take
	SellsOutIn *float64   `json:"sells_out_in"`   // seconds; nil: not at this pace
	SoldOutAt  int64      `json:"sold_out_at"`    // ms; 0: it is not, or that was long ago
	Movers     []itemRow  `json:"movers"`         //
	Questions  *questions `json:"questions"`      //
	Log        []action   `json:"log"`            // the newest first
	Lead       float64    `json:"lead,omitempty"` // seconds
	Line       *lineFrame `json:"line,omitempty"` // nil: the sale has no queue
	Acts       []actFrame `json:"acts,omitempty"` // scheduled, and done lately
	// Waitlist is the waiting list; nil: the sale has none, or this edge does not follow it now.
	Waitlist *waitlistFrame `json:"waitlist,omitempty"`
	// Regions are the regions of a sale that has several.
	Regions  []regionRow `json:"regions,omitempty"`
	Failures []failure   `json:"failures"` // the newest last
}

// lineFrame is the line of orders that wait for the shop.
type lineFrame struct {
	Waiting int64   `json:"waiting"`
	AtShop  int64   `json:"at_shop"`
	Oldest  int64   `json:"oldest"` // ms
	Pace    float64 `json:"pace"`   // orders a second
	Stopped bool    `json:"stopped"`
	Skipped int64   `json:"skipped"` // of those that wait; no edge can send them
}

type itemRow struct {
	SKU    string   `json:"sku"`
	Region string   `json:"region,omitempty"`
	Stock  [5]int64 `json:"stock"`             // stock, available, held, in doubt, sold
	Pace   float64  `json:"pace"`              // units a second that buyers take
	GoneAt int64    `json:"gone_at,omitempty"` // ms; when the last unit was taken, if that is known
}

type journalFrame struct {
	Length     int64   `json:"length"`
	LedgerLag  *int64  `json:"ledger_lag"` // movements; nil: there is no ledger
	LedgerAge  float64 `json:"ledger_age"` // seconds
	OutboxLag  *int64  `json:"outbox_lag"`
	OutboxAge  float64 `json:"outbox_age"`
	LostAtAll  int64   `json:"lost,omitempty"`
	LastNumber int64   `json:"last"`
}

// frame returns the encoded frame of a sale; empty: the one to look at first.
func (c *collector) frame(id string) []byte {
	c.mu.Lock()
	body, ok := c.frames[id]
	c.mu.Unlock()
	if ok {
		return body
	}
	body, err := json.Marshal(c.compose(id))
	if err != nil { // no number is NaN or infinite
		panic(err)
	}
	c.mu.Lock()
	c.frames[id] = body
	c.mu.Unlock()
	return body
}

func (c *collector) compose(id string) *frame {
	f := &frame{Now: time.Now().UnixMilli(), Sales: []saleSummary{}, Attempts: attemptFrame{Total: map[string]float64{}, Rate: map[string]float64{}, Edges: []edgeRow{}}}
	f.Edge = edgeFrame{Ready: true, Backlog: c.runtime.Backlog(), InFlight: c.runtime.InFlight()}
	load := c.runtime.Store.Calls.Load()
	f.Edge.Queue = calls{load.Waiting, load.Batches, load.Sending}
	if err := c.runtime.Ready(); err != nil {
		f.Edge.Ready, f.Edge.Why = false, err.Error()
	}
	f.Store, f.Bypassed = storeOf(c.runtime.OwnServer()), c.bypassed()
	s, l := c.find(id)
	f.Edge.Silent = len(c.runtime.Silent())
	c.mu.Lock()
	f.Edge.Viewers = c.viewers
	for _, other := range c.order[:min(len(c.order), shownSales)] {
		f.Sales = append(f.Sales, summaryOf(other))
	}
	c.mu.Unlock()
	now, past := c.counter.last()
	if s != nil {
		f.Sale = s.frame(l)
		f.Point = s.newest()
		f.Journal = s.journal(now)
		f.Attempts = s.attempts(now, past, c.runtime.Leases().ID())
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	f.Redis, f.Alarms, f.Edge.Edges = c.server.redis, c.server.alarms, c.server.edges
	if f.Sale != nil {
		f.Sale.Questions = c.server.questions[f.Sale.ID]
	}
	return f
}

// bypassed has a sentence for each gate whose orders pass without a reservation.
func (c *collector) bypassed() []string {
	a := app.Active()
	if a == nil || a.Runtime() != c.runtime {
		return nil
	}
	var all []string
	for _, p := range a.Bypassed() {
		all = append(all, p.Sentence())
	}
	return all
}

// onSale is the state of a sale that edges sell.
const onSale = "on_sale"

func summaryOf(l *edge.Listing) saleSummary {
	state := onSale
	now := l.Now()
	switch {
	case l.Lost():
		state = "lost"
	case l.Status == sale.Closed:
		state = "closed"
	case !now.Before(l.Sale.EndsAt):
		state = "ended"
	case l.Status == sale.Draft:
		state = "draft"
	case l.Status == sale.Paused:
		state = "paused"
	case now.Before(l.Sale.StartsAt):
		state = "not_started"
	}
	return saleSummary{l.Sale.ID, l.Status, state}
}

// frame returns what the page shows of a sale.
func (s *saleReader) frame(l *edge.Listing) *saleFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &saleFrame{
		saleSummary: summaryOf(l), StartsAt: l.Sale.StartsAt.UnixMilli(), EndsAt: l.Sale.EndsAt.UnixMilli(), Timezone: cmp.Or(l.Sale.Timezone, "UTC"), SaleNow: l.Now().UnixMilli(),
		Items: len(s.items), Balanced: len(s.odd) == 0, Log: slices.Clone(s.log.list), Movers: s.movers(),
		Stock: stockOf(s.sum), Regions: s.inRegions(time.Now()), Failures: append([]failure{}, s.failures.list...),
	}
	slices.Reverse(f.Log)
	if !s.read.IsZero() {
		f.ReadAt = s.read.UnixMilli()
	}
	f.Pace = s.pace()
	f.SellsOutIn = s.lasts(f.State, f.Pace)
	f.SoldOutAt = s.soldOutAt()
	f.Lead, f.Acts, f.Waitlist = s.head.Lead.Seconds(), s.acts, s.waits
	if q := s.line; q != nil {
		f.Line = &lineFrame{q.Waiting, q.AtShop, q.Oldest.Milliseconds(), q.Pace, q.Paused || q.HeldUp > 0, q.Skipped}
	}
	return f
}

// lasts returns for how many seconds the stock lasts at a pace; nil: the sale does not sell, and how it sold
// before says nothing of what comes, or nothing is taken.
func (s *saleReader) lasts(state string, pace float64) *float64 {
	if state != onSale || pace <= 0 || s.sum.Available <= 0 {
		return nil
	}
	left := float64(s.sum.Available) / pace
	return &left
}

// pace returns how many units a second buyers have taken lately.
func (s *saleReader) pace() float64 {
	newest := s.history.tiers[0]
	if len(newest) == 0 {
		return 0
	}
	last := newest[len(newest)-1]
	was, ok := s.history.before(last.at - paceOver.Milliseconds())
	if !ok {
		was = newest[0]
	}
	seconds := float64(last.at-was.at) / 1000
	taken := last.taken() - was.taken()
	if seconds <= 0 || math.IsNaN(taken) || taken < 0 {
		return 0
	}
	return taken / seconds
}

// soldOutAt returns when the last unit was taken, in ms; 0: it was not, or that is not known.
func (s *saleReader) soldOutAt() int64 {
	if s.sum.Available > 0 || s.sum.Stock == 0 {
		return 0
	}
	all := s.history.all()
	at := int64(0)
	for i := len(all) - 1; i >= 0 && !(all[i].values[3] > 0); i-- {
		at = all[i].at
		if i == 0 {
			return 0
		}
	}
	return at
}

// movers returns the items that move most, and then the first of the sale.
func (s *saleReader) movers() []itemRow {
	now := time.Now()
	moving := make([]*item, 0, len(s.recent))
	for name, i := range s.recent {
		if i.moving(now) < 0.001 {
			delete(s.recent, name)
			continue
		}
		moving = append(moving, i)
	}
	slices.SortFunc(moving, func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.moving(now), a.moving(now)), cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Region, b.Region))
	})
	rows := make([]itemRow, 0, shownItems)
	for _, i := range moving[:min(len(moving), shownItems)] {
		rows = append(rows, rowOf(i))
	}
	return rows
}

func rowOf(i *item) itemRow {
	row := itemRow{SKU: i.SKU, Region: i.Region, Stock: stockOf(i.Cell), Pace: i.flow.pace(time.Now())}
	if !i.gone.IsZero() {
		row.GoneAt = i.gone.UnixMilli()
	}
	return row
}

// newest returns the last point in the form of a frame.
func (s *saleReader) newest() []*float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.history.tiers[0]
	if len(first) == 0 {
		return nil
	}
	return first[len(first)-1].row()
}

// row returns a point as JSON can say it: the time, and null for what is unknown.
func (p *point) row() []*float64 {
	at := float64(p.at)
	row := []*float64{&at}
	for i := range p.values {
		row = append(row, known(p.values[i]))
	}
	return row
}

// known returns nil for what is no number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1000) / 1000
	return &v
}

func (s *saleReader) journal(n *counts) journalFrame {
	s.mu.Lock()
	f := journalFrame{Length: s.head.Length, LostAtAll: s.head.Lost, LastNumber: s.head.Last}
	s.mu.Unlock()
	if n == nil {
		return f
	}
	lag := func(name string) *int64 {
		v, ok := n.gauges[name][s.id]
		if !ok {
			return nil
		}
		movements := int64(v)
		return &movements
	}
	f.LedgerLag, f.OutboxLag = lag("stockgate_ledger_lag_movements"), lag("stockgate_outbox_lag_movements")
	f.LedgerAge, f.OutboxAge = n.gauges["stockgate_ledger_lag_seconds"][s.id], n.gauges["stockgate_outbox_lag_seconds"][s.id]
	return f
}
