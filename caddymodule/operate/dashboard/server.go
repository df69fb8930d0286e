package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// serverEvery is how often Redis and the holds are examined while there are viewers, and
	// examineEvery how often everything is that the doctor examines.
	serverEvery, examineEvery = 3 * time.Second, 10 * time.Second
	// examineShare bounds the time that examining takes: the doctor reads every cell.
	examineShare = 100
	// serverWithin bounds one examination.
	serverWithin = 15 * time.Second
	// doubtsAtOnce is how many holds in doubt are counted by cause, and holdsAtOnce how many
	// holds by age.
	doubtsAtOnce, holdsAtOnce = 1_000, 1_000
	// shownDoubts is how many of them the page lists.
	shownDoubts = 20
)

// redisState is what the page says of one Redis.
type redisState struct {
	Embedded bool    `json:"embedded,omitempty"`
	Version  string  `json:"version,omitempty"`
	Valkey   bool    `json:"valkey,omitempty"`
	Role     string  `json:"role,omitempty"`
	Used     int64   `json:"used,omitempty"`
	Max      int64   `json:"max,omitempty"`
	AOF      bool    `json:"aof"`
	Fsync    string  `json:"fsync,omitempty"`
	Replicas int     `json:"replicas"`
	Delay    float64 `json:"delay_ms"`
}

// alarm is a finding that is not ok, and since when it has been so.
type alarm struct {
	Level string `json:"level"`
	Check string `json:"check"`
	Text  string `json:"text"`
	Since int64  `json:"since"` // ms
}

// cause counts the holds in doubt of one cause.
type cause struct {
	Cause  string `json:"cause"`
	Holds  int    `json:"holds"`
	Units  int64  `json:"units"`
	Oldest int64  `json:"oldest"` // ms
}

// questions are the holds of a sale that an operator may have to decide.
type questions struct {
	InDoubt  int64   `json:"in_doubt"`
	Causes   []cause `json:"causes"`
	Unbacked int64   `json:"unbacked"`
	Held     int64   `json:"held"`
	// OldestHeld is when the oldest of the holds in Ages began, in ms; 0: there are none.
	OldestHeld int64 `json:"oldest_held,omitempty"`
	// Ages count the holds whose deadlines come first by their age.
	Ages []age `json:"ages"`
	// Doubts are the oldest holds in doubt.
	Doubts []doubt `json:"doubts"`
}

// age counts the holds that are younger than Below, and not younger than the one before.
type age struct {
	Below int64 `json:"below"` // seconds; 0: any
	Holds int   `json:"holds"`
	Units int64 `json:"units"`
}

// ageSteps are the ages by which holds are counted, in seconds.
var ageSteps = [...]int64{5, 15, 60, 600, 0}

// doubt is a hold in doubt.
type doubt struct {
	ID       string `json:"id"`
	Ref      string `json:"ref,omitempty"`
	Cause    string `json:"cause"`
	Units    int64  `json:"units"`
	Since    int64  `json:"since"`    // ms
	Deadline int64  `json:"deadline"` // ms
}

// serverReader examines, while there are viewers, what changes slowly.
type serverReader struct {
	collector *collector
	wake      chan struct{}

	mu        sync.Mutex
	redis     []redisState
	edges     int64 // -1: unknown
	alarms    []alarm
	questions map[string]*questions
}

func newServerReader(c *collector) *serverReader {
	return &serverReader{collector: c, wake: make(chan struct{}, 1), edges: -1, questions: make(map[string]*questions)}
}

// hurry makes it examine everything now.
func (r *serverReader) hurry() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run examines until ctx ends. Whether this edge may sell is known in memory: when that
// changes, the alarms are made again at once.
func (r *serverReader) run(ctx context.Context) {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	var server, all time.Time
	var took time.Duration
	ready := true
	for {
		hurried := false
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			hurried = true
		case <-ticks.C:
		}
		is := r.collector.runtime.Ready() == nil
		if !hurried && is == ready && (!r.collector.watched() || time.Since(server) < serverEvery) {
			continue
		}
		every := examineEvery
		if hurried {
			every = serverEvery // what was found before the first viewer came is old
		}
		if is != ready || time.Since(all) >= max(every, examineShare*took) {
			began := time.Now()
			r.examine(ctx)
			all = time.Now()
			took = all.Sub(began)
		}
		r.look(ctx)
		ready, server = is, time.Now()
	}
}

// examine takes the doctor's findings.
func (r *serverReader) examine(ctx context.Context) {
	a := app.Active()
	if a == nil || a.Runtime() != r.collector.runtime {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, serverWithin)
	defer cancel()
	found := doctor.Examine(ctx, a, r.collector.runtime, doctor.Doubt)
	r.mu.Lock()
	defer r.mu.Unlock()
	since := make(map[string]int64)
	for _, old := range r.alarms {
		since[old.Level+old.Check] = old.Since
	}
	r.alarms = nil
	for _, level := range []string{adminapi.LevelError, adminapi.LevelWarning} {
		for _, f := range found.Findings {
			if f.Level != level {
				continue
			}
			began, ok := since[f.Level+f.Check]
			if !ok {
				began = time.Now().UnixMilli()
			}
			r.alarms = append(r.alarms, alarm{f.Level, f.Check, f.Text, began})
		}
	}
}

// look examines Redis, and the open questions of the sales that are looked at.
func (r *serverReader) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serverWithin)
	defer cancel()
	store := r.collector.runtime.Store
	servers, err := store.Shard().Inspect(ctx)
	edges, failed := store.Shard().Listeners(ctx)
	if failed != nil || r.collector.runtime.IsLocal() {
		edges = -1
	}
	asked := make(map[string]*questions)
	for _, l := range r.collector.questioned() {
		if q, err := ask(ctx, store, l.Sale.ID, l.Now()); err == nil {
			asked[l.Sale.ID] = q
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edges, r.redis = edges, nil
	if err == nil {
		for i := range servers {
			r.redis = append(r.redis, stateOf(&servers[i]))
		}
	}
	r.questions = asked
}

func stateOf(s *shard.Server) redisState {
	role := "master"
	if s.Replica {
		role = "replica"
	}
	bound := s.Max
	if bound == 0 {
		bound = s.Machine
	}
	return redisState{s.Embedded, s.Version, s.Valkey, role, s.Used, bound, s.AOF, s.Fsync, s.Replicas, float64(s.Delay.Microseconds()) / 1000}
}

// ask counts the open questions of a sale. now is Redis's time.
func ask(ctx context.Context, store *reservation.Store, id string, now time.Time) (q *questions, err error) {
	q = &questions{Causes: []cause{}, Doubts: []doubt{}, Ages: []age{}}
	for state, into := range map[record.State]*int64{record.InDoubt: &q.InDoubt, record.Unbacked: &q.Unbacked, record.Held: &q.Held} {
		if *into, err = store.CountHolds(ctx, id, state); err != nil {
			return nil, err
		}
	}
	held, _, err := store.HoldsAfter(ctx, id, reservation.HoldFilter{State: record.Held}, "", holdsAtOnce)
	if err != nil {
		return nil, err
	}
	q.age(held, now)
	if q.InDoubt == 0 {
		return q, nil
	}
	doubts, _, err := store.HoldsAfter(ctx, id, reservation.HoldFilter{State: record.InDoubt}, "", doubtsAtOnce)
	for i := range doubts {
		q.add(&doubts[i])
	}
	return q, err
}

// age counts holds by their age.
func (q *questions) age(held []reservation.Record, now time.Time) {
	var counted [len(ageSteps)]age
	for i := range held {
		created := held[i].Created.UnixMilli()
		if q.OldestHeld == 0 || created < q.OldestHeld {
			q.OldestHeld = created
		}
		seconds := (now.UnixMilli() - created) / 1000
		for step, below := range ageSteps {
			if below == 0 || seconds < below {
				counted[step].Holds++
				counted[step].Units += unitsOf(&held[i])
				break
			}
		}
	}
	for step, a := range counted {
		if a.Holds > 0 {
			a.Below = ageSteps[step]
			q.Ages = append(q.Ages, a)
		}
	}
}

func unitsOf(r *reservation.Record) (units int64) {
	for _, l := range r.Lines {
		units += l.Quantity
	}
	return units
}

func (q *questions) add(r *reservation.Record) {
	units := unitsOf(r)
	if len(q.Doubts) < shownDoubts {
		q.Doubts = append(q.Doubts, doubt{r.ID, r.Ref, r.Cause, units, r.Changed.UnixMilli(), r.Deadline.UnixMilli()})
	}
	for i := range q.Causes {
		if c := &q.Causes[i]; c.Cause == r.Cause { // the oldest come first
			c.Holds++
			c.Units += units
			return
		}
	}
	q.Causes = append(q.Causes, cause{r.Cause, 1, units, r.Changed.UnixMilli()})
}

// questioned returns the sales whose open questions are counted.
func (c *collector) questioned() []*edge.Listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sales []*edge.Listing
	for i, l := range c.order {
		if c.viewed[l.Sale.ID] > 0 || i == 0 && c.viewed[""] > 0 {
			sales = append(sales, l)
		}
	}
	return sales
}
