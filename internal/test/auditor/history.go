package auditor

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Line is an item with its quantity.
type Line struct {
	SKU    string `json:"sku"`
	Region string `json:"region,omitempty"`
	Qty    int64  `json:"qty"`
}

// Cell is the name of the line's stock cell.
func (l Line) Cell() string {
	if l.Region == "" {
		return l.SKU
	}
	return l.SKU + "@" + l.Region
}

// Attempt is one request of a buyer and what came back.
type Attempt struct {
	ID          string // sent along, so that the shop can name the attempt that an order belongs to
	Sent, Heard int64  // ticks of the history; Heard is 0 where no whole answer came
	Edge        string
	Buyer, Key  string
	Ref         string
	Lines       []Line
	Browse      bool // another route of the site, not a purchase

	Status      int
	Reason      string // Stockgate-Refusal
	RetryAfter  string
	Reservation string
	Replayed    bool
	Proof       string // what only the shop can have said: the name of the order
	Err         string // why there is no whole answer
	Queue       string // Stockgate-Queue: the answer tells where the order stands, and is not the shop's
	Place       string // the path at which to ask then
}

// Won reports whether the buyer was told that the order is placed.
func (a *Attempt) Won() bool {
	return a.Heard > 0 && a.Status >= 200 && a.Status < 300 && !a.Browse && a.Queue == ""
}

func (a *Attempt) String() string {
	if a.Heard == 0 {
		return fmt.Sprintf("attempt %s of buyer %s (key %q) at %s, sent at %d: no answer (%s)", a.ID, a.Buyer, a.Key, a.Edge, a.Sent, a.Err)
	}
	return fmt.Sprintf("attempt %s of buyer %s (key %q) at %s, sent at %d, heard at %d: %d %s, order %q, replayed %v",
		a.ID, a.Buyer, a.Key, a.Edge, a.Sent, a.Heard, a.Status, a.Reason, a.Proof, a.Replayed)
}

// Order is one request that reached the shop's order route.
type Order struct {
	At      int64
	Attempt string // of the buyer, as the request says
	JTI     string
	Buyer   string
	Key     string
	Ref     string
	Sale    string
	Lines   []Line
	Proof   string // the name that the shop gave the order
	Taken   bool   // written by the shop: these units are gone
	Again   bool   // its jti was known: answered like the first time
	Answer  int    // the status that the shop sent; 0: none, or not one of HTTP
	Problem string // what was wrong with the token
	Expires int64  // of the token, in seconds since the epoch
	Came    time.Time
	Left    int64 // the tick just before the shop answered; 0: it did not
}

func (o *Order) String() string {
	if o == nil {
		return "no order"
	}
	return fmt.Sprintf("order %s of buyer %s (attempt %s, key %q, reservation %s) at %d: taken %v, again %v, answered %d %s",
		o.Proof, o.Buyer, o.Attempt, o.Key, o.JTI, o.At, o.Taken, o.Again, o.Answer, o.Problem)
}

// History is everything that happened in one scenario. Its methods are safe for concurrent use.
type History struct {
	tick atomic.Int64

	mu       sync.Mutex
	Attempts []*Attempt
	Orders   []*Order
	Cut      []*Order // that reached the shop in part: it knows nothing of them
	Looks    []*Look
	Waits    []*Wait
	marks    map[string][]mark // by sale

	// Stock is the most that operators have put on sale, for each sale and cell.
	Stock map[string]map[string]int64
	// Shards are the sales as Redis keeps them at the end.
	Shards []*Shard
	// Max is how many units a buyer may have of a sale; 0: any number.
	Max int64
	// Queues are the sales whose orders wait for the shop.
	Queues []Queue
	// Waitlists are the sales in which people wait for units.
	Waitlists []Waitlist
	// Hoarding is the attack of buyers who never pay, if there is one.
	Hoarding Hoarding

	// What the scenario itself does, so that it is no fault of the product.
	ShopFails   bool // the shop breaks connections or answers nonsense
	ShopAway    bool // the link to the shop is cut: its other routes answer 502 too
	EdgesDie    bool // connections of buyers may break
	ByOperators bool // reservations are also resolved by operators
	Tampered    bool // the keys in Redis were damaged: cells are judged, indexes are not
}

// Tick returns the next moment: an event with a smaller one happened before.
func (h *History) Tick() int64 { return h.tick.Add(1) }

// Heard adds an attempt.
func (h *History) Heard(a *Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Attempts = append(h.Attempts, a)
}

// Ordered adds an order.
func (h *History) Ordered(o *Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Orders = append(h.Orders, o)
}

// CutOff notes an order whose connection broke before all of it had reached the shop.
func (h *History) CutOff(o *Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.At, h.Cut = h.Tick(), append(h.Cut, o)
}

// CutOrders returns the orders that were cut off.
func (h *History) CutOrders() []*Order {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Cut)
}

// Leaves notes that the shop answers an order now.
func (h *History) Leaves(o *Order) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Left = h.Tick()
}

// Load adds units to what may be sold.
func (h *History) Load(sale, cell string, units int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Stock == nil {
		h.Stock = map[string]map[string]int64{}
	}
	if h.Stock[sale] == nil {
		h.Stock[sale] = map[string]int64{}
	}
	h.Stock[sale][cell] += units
}

// Violation is one broken promise with its proof.
type Violation struct {
	Promise  string   `json:"promise"`
	What     string   `json:"what"`
	Evidence []string `json:"evidence,omitempty"`
}

func (v Violation) String() string {
	text := v.Promise + ": " + v.What
	for _, e := range v.Evidence {
		text += "\n      " + e
	}
	return text
}

// The promises, as a violation names them.
const (
	NoOversell  = "P1 no oversell"
	AtMostOnce  = "P2 at most once"
	OneState    = "P3 one state"
	ValidToken  = "P4 no order without a valid token"
	ChargesNone = "P5 a refusal charges nothing"
	ByAddress   = "what counts by address cannot be avoided"
	FailClosed  = "P6 fail closed, open for browsing"
	Balance     = "P7 the books balance"
	FromTheShop = "an answer that says success comes from the shop"
	WinnerHears = "a winner hears of the order"

	Pace    = "the shop gets no more orders than it can take"
	InOrder = "orders reach the shop in the order in which they came"
	NotLost = "no order that waits is lost"
	Places  = "what buyers hear of their places is true"

	InTurn      = "units go to the person whose turn it is"
	OneEntry    = "a person has one entry"
	WaitlistSay = "what people hear of a waiting list is true"

	HalfForHonest = "honest buyers get half of what hoarders want"
	// Control is no promise: without it the scenario shows nothing.
	Control = "the control"
)

func broken(promise, format string, args ...any) Violation {
	return Violation{Promise: promise, What: fmt.Sprintf(format, args...)}
}

func (v Violation) with(evidence ...fmt.Stringer) Violation {
	for _, e := range evidence {
		v.Evidence = append(v.Evidence, e.String())
	}
	return v
}
