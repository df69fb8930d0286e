package auditor

import (
	"slices"
	"strings"
	"time"
)

// Waitlist says what holds for people who wait in a sale.
type Waitlist struct {
	Sale string
	// Max is the least number of people for which the sale file ever had room.
	Max int64
	// ToldAgain: Redis may lose what edges know, which they tell it again: the order of movements is another one then.
	ToldAgain bool
}

// Wait is one request at a waiting list, and what came back.
type Wait struct {
	Sent, Heard int64 // as in Attempt
	Edge        string
	Method      string // POST enters, GET asks, DELETE leaves
	Sale        string
	Buyer       string
	Phone       string
	Line        Line
	Path        string // where it asks; of a POST, the one that the person was told

	Status     int
	Reason     string // Stockgate-Refusal
	RetryAfter string
	Err        string
	WaitAnswer
}

// WaitAnswer is the body of an answer about a person who waits.
type WaitAnswer struct {
	State    string    `json:"state"`
	SKU      string    `json:"sku"`
	Region   string    `json:"region"`
	Quantity int64     `json:"quantity"`
	Place    int64     `json:"place"`
	SoldOut  bool      `json:"sold_out"`
	Paused   bool      `json:"paused"`
	Until    time.Time `json:"until"`
	Why      string    `json:"why"`
}

// mark tells how far the journal of a sale was at some moment between two ticks.
type mark struct {
	before, after int64
	at            time.Time // before
	seq           int64
}

// stale is how old a view from which an edge answers may be, by its own clock. The status of a sale has no such
// bound: an edge looks for it twice a second, as fast as its machine lets it.
const stale, staleStatus = time.Second, 20 * time.Second

// Mark notes how far a journal is. read asks for the number of its last movement; false: it is not known.
func (h *History) Mark(sale string, read func() (seq int64, ok bool)) {
	m := mark{before: h.Tick(), at: time.Now()}
	seq, ok := read()
	if !ok {
		return
	}
	m.after, m.seq = h.Tick(), seq
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marks == nil {
		h.marks = map[string][]mark{}
	}
	h.marks[sale] = append(h.marks[sale], m)
}

// Waited adds a request at a waiting list.
func (h *History) Waited(w *Wait) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Waits = append(h.Waits, w)
}

// span returns how far the journal of a sale was when a request was sent, at least, and when it was heard, at most.
// old is by how much it may be older, because it comes from memory.
func (h *History) span(sale string, sent, heard int64, old time.Duration, end int64) (from, to int64) {
	marks := h.marks[sale]
	i, _ := slices.BinarySearchFunc(marks, sent, func(m mark, t int64) int { return int(m.after - t) })
	i-- // the last one that was read before
	if old > 0 && i >= 0 {
		for at := marks[i].at; i >= 0 && at.Sub(marks[i].at) < old; i-- {
		}
	}
	if i >= 0 {
		from = marks[i].seq
	}
	to = end
	if j, _ := slices.BinarySearchFunc(marks, heard+1, func(m mark, t int64) int { return int(m.before - t) }); j < len(marks) {
		to = marks[j].seq
	}
	return from, to
}

// buyerIn returns the keyed hash of the buyer whom a place names.
func buyerIn(place string, length int) string {
	_, secret, _ := strings.Cut(place, "~")
	if len(secret) < length {
		return ""
	}
	return secret[:length]
}
