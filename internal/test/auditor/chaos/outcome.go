package chaos

import (
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// Outcome is what came out of a run.
type Outcome struct {
	History *auditor.History
	// Broken are the promises that hold on this configuration and did not.
	Broken []auditor.Violation
	// Counted are those of which the configuration promises nothing.
	Counted []auditor.Violation
	Losses  auditor.Losses
	Counts  map[string]int
	// Recovered is, for each fault in its order, how long after its end every edge sold again.
	Recovered []Recovery
	Notes     []string
	Logs      map[string]string // the end of each edge's log
}

// Recovery is how long a fault kept an edge from selling.
type Recovery struct {
	Fault string        `json:"fault"`
	Began time.Time     `json:"began"`
	Down  time.Duration `json:"down"`  // from its beginning to its end
	After time.Duration `json:"after"` // from its end until every edge sold
}

// settle waits until every hold has ended, each edge has told what it had to tell, and the
// ledger has everything.
func (r *Run) settle() {
	for _, sale := range r.sales {
		r.until("every hold of "+sale+" ends", func() bool {
			home := r.store.home(sale)
			if home == nil {
				return false
			}
			n, err := home.Do("ZCARD", rig.Key(sale, "deadlines"))
			return err == nil && n == int64(0)
		})
	}
	if r.queue {
		r.emptyLines()
	}
	for _, e := range r.edges {
		r.until("edge "+e.Name+" has told Redis every outcome", e.Told)
	}
}

// home is the primary of a sale. Nodes that a busy machine keeps waiting may name none for a while.
func (r *Run) home(sale string) (home *rig.Redis) {
	r.until("a primary of "+sale, func() bool { home = r.store.home(sale); return home != nil })
	return home
}

// judged reads what Redis has and judges the whole history.
func (r *Run) judged() *Outcome {
	out := r.unfinished()
	for _, sale := range r.sales {
		var s *auditor.Shard
		var err error
		home := r.home(sale)
		if r.ledger {
			var ledger []auditor.Movement
			ledger, s, err = r.sql.CaughtUp(home, sale)
			r.must(err)
			out.Broken = append(out.Broken, auditor.JudgeLedger(ledger, s)...)
		} else {
			s, err = rig.Collect(home.Addr(), sale)
			r.must(err)
		}
		out.Counts["movements"] += len(s.Movements)
		r.h.Shards = append(r.h.Shards, s)
	}
	replayed, found := auditor.JudgeShards(r.h)
	out.Losses = auditor.CountLosses(r.h, replayed)
	broken, counted := r.apart(append(found, r.found...), auditor.JudgePromises(r.h, replayed))
	out.Broken, out.Counted = append(out.Broken, broken...), counted
	return out
}

// lossy are the promises about sales that a store has forgotten. The others hold whatever a
// store loses.
var lossy = map[string]bool{
	auditor.NoOversell: true, auditor.AtMostOnce: true, auditor.OneState: true, auditor.Balance: true, auditor.WinnerHears: true, auditor.ChargesNone: true,
}

// apart says what counts as broken: what Redis says about itself always does, what it has
// lost only if the configuration promises that it loses nothing.
func (c *Config) apart(shards, others []auditor.Violation) (broken, counted []auditor.Violation) {
	broken = shards
	for _, v := range others {
		if c.Open != "" && lossy[v.Promise] {
			counted = append(counted, v)
		} else {
			broken = append(broken, v)
		}
	}
	return broken, counted
}

// unfinished is what can be said of a run at any time.
func (r *Run) unfinished() *Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Outcome{History: r.h, Counts: crowd.Tally(r.h.Attempts), Notes: r.notes, Logs: map[string]string{}}
	for _, s := range r.steps {
		out.Recovered = append(out.Recovered, Recovery{s.Fault, s.Began, s.Ended.Sub(s.Began), r.good.after(s.Ended)})
	}
	for _, e := range r.edges {
		out.Logs[e.Name] = e.Log.Tail(40)
	}
	return out
}
