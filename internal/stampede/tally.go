package stampede

import (
	"maps"
	"sync"
	"time"
)

// Tally is what the crowd's buyers were told.
type Tally struct {
	// Buyers is how many people ordered, Requests how many orders they sent.
	Buyers   int `json:"buyers"`
	Requests int `json:"requests"`
	// Accepted is how many answers said yes. An answer that was given twice
	// counts twice: see Answers for the reservations.
	Accepted int `json:"accepted"`
	// Refused counts the gate's refusals by their reason.
	Refused map[string]int `json:"refused"`
	// Statuses counts answers by status, refusals included.
	Statuses map[int]int `json:"statuses"`
	// Failed counts orders without an answer, by the kind of failure.
	Failed map[string]int `json:"failed"`
	// Elapsed is from the first order to the last answer; Busy is the part of it
	// in which any buyer waited for an answer, and not only for the time to retry.
	Elapsed time.Duration `json:"elapsed_ns"`
	Busy    time.Duration `json:"busy_ns"`
	// Latency is from when an order was due to its answer, of buyers who wait for it; one who
	// waited in vain until the timeout counts with that time.
	Latency Latency `json:"latency"`
	// Late is how long after their time orders of a schedule began; nil: there was none.
	Late *Latency `json:"late,omitempty"`
	// Redirects counts answers by the scheme and host to which they redirect.
	Redirects map[string]int `json:"redirects,omitempty"`

	// Waited is what became of those who entered the waiting list; nil: none could.
	Waited *Waited `json:"waited,omitempty"`

	// Answers are all but the gate's refusals.
	Answers []Answer `json:"-"`
	// TurnedAway are the buyers whose orders the gate has all refused: they must have
	// nothing.
	TurnedAway map[string]bool `json:"-"`
	// SoldOut are the baskets that a buyer was told are sold out.
	SoldOut []Basket `json:"-"`
}

// Answered is how many orders got an answer.
func (t *Tally) Answered() int { return t.Requests - t.TotalFailed() }

// AnswersPerSecond is the rate at which orders were answered while any waited.
func (t *Tally) AnswersPerSecond() float64 {
	if t.Busy <= 0 {
		return 0
	}
	return float64(t.Answered()) / t.Busy.Seconds()
}

// TotalRefused is how many orders the gate refused.
func (t *Tally) TotalRefused() int { return sum(t.Refused) }

// TotalFailed is how many orders got no answer.
func (t *Tally) TotalFailed() int { return sum(t.Failed) }

// Unclear is how many answers were neither a success nor a gate's refusal: the shop's
// own refusals, and errors on the way to it.
func (t *Tally) Unclear() int {
	return t.Answered() - t.Accepted - t.TotalRefused()
}

func sum[K comparable](counts map[K]int) int {
	n := 0
	for v := range maps.Values(counts) {
		n += v
	}
	return n
}

// What a buyer was told so far.
const (
	silent = iota // no order was sent
	refused
	maybe // at least one of the answers was not a refusal
)

// notebook collects what the buyers are told.
type notebook struct {
	crowd *Crowd
	times histogram
	late  histogram // of a schedule

	mu      sync.Mutex
	t       Tally
	told    []uint8 // by buyer
	soldOut []bool  // by basket
	waiting int     // orders under way
	since   time.Time
}

func newNotebook(c *Crowd) *notebook {
	b := &notebook{
		crowd:   c,
		t:       Tally{Refused: map[string]int{}, Statuses: map[int]int{}, Failed: map[string]int{}},
		told:    make([]uint8, c.Buyers),
		soldOut: make([]bool, len(c.Baskets)),
	}
	if c.Waitlist != nil {
		b.t.Waited = &Waited{Refused: map[string]int{}, Ended: map[string]int{}}
	}
	return b
}

// begin notes that an order is on its way; note ends it.
func (b *notebook) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting++; b.waiting == 1 {
		b.since = time.Now()
	}
}

func (b *notebook) note(buyer, basket int, a *Answer, took time.Duration, how way) {
	if how <= scheduled && (a.Failure == "" || a.Failure == timedOut) {
		b.times.add(took)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.t.Busy += time.Since(b.since)
	}
	b.t.Requests++
	if a.Failure != "" {
		b.t.Failed[a.Failure]++
	} else {
		b.t.Statuses[a.Status]++
	}
	if a.redirect != "" {
		b.redirected(a.redirect)
	}
	if a.refusal != "" {
		b.t.Refused[a.refusal]++
		b.told[buyer] = max(b.told[buyer], refused)
		b.soldOut[basket] = b.soldOut[basket] || a.refusal == "sold_out"
		return
	}
	if a.Accepted {
		b.t.Accepted++
	}
	b.told[buyer] = maybe
	b.t.Answers = append(b.t.Answers, *a)
}

// mostRedirects bounds the hosts that are counted.
const mostRedirects = 20

func (b *notebook) redirected(to string) {
	if b.t.Redirects == nil {
		b.t.Redirects = map[string]int{}
	}
	if _, known := b.t.Redirects[to]; known || len(b.t.Redirects) < mostRedirects {
		b.t.Redirects[to]++
	}
}

// tally closes the notebook.
func (b *notebook) tally(elapsed time.Duration) *Tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.t
	t.Elapsed, t.Latency = elapsed, b.times.latency()
	if b.crowd.open() {
		late := b.late.latency()
		t.Late = &late
	}
	t.TurnedAway = map[string]bool{}
	for buyer, told := range b.told {
		if told != silent {
			t.Buyers++
		}
		if name := b.crowd.name(buyer); told == refused && name != "" {
			t.TurnedAway[name] = true
		}
	}
	for buyer, told := range b.told { // data may name one buyer twice
		if told == maybe {
			delete(t.TurnedAway, b.crowd.name(buyer))
		}
	}
	for i, yes := range b.soldOut {
		if yes && b.crowd.Template == nil {
			t.SoldOut = append(t.SoldOut, b.crowd.Baskets[i])
		}
	}
	return t
}
