package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/chaos"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// result is one run. A file has one for each line.
type result struct {
	Config    string              `json:"config"`
	Class     chaos.Class         `json:"class"`
	Open      string              `json:"open,omitempty"` // why nothing is promised
	Commit    string              `json:"commit"`
	Seed      uint64              `json:"seed"`
	Seconds   float64             `json:"seconds"`
	Orders    int                 `json:"orders"`
	Attempts  int                 `json:"attempts"`
	Counts    map[string]int      `json:"counts"`
	Losses    auditor.Losses      `json:"losses"`
	Broken    []auditor.Violation `json:"broken,omitempty"`
	Counted   int                 `json:"counted"`
	Recovered []chaos.Recovery    `json:"recovered"`
	Notes     []string            `json:"notes"`
	Schedule  chaos.Schedule      `json:"schedule"`

	outcome *chaos.Outcome
}

func (r *result) failed() bool { return len(r.Broken) > 0 }

func (r *result) String() string {
	verdict := "held"
	switch {
	case r.failed():
		verdict = fmt.Sprintf("BROKEN (%d)", len(r.Broken))
	case r.Open != "":
		verdict = fmt.Sprintf("no promise: %d orders (%d units) lost, %d units sold twice", r.Losses.Orders, r.Losses.Units, r.Losses.SoldTwice)
	}
	var words []string
	for _, what := range slices.Sorted(maps.Keys(r.Counts)) {
		words = append(words, fmt.Sprintf("%s %d", what, r.Counts[what]))
	}
	text := fmt.Sprintf("%-16s (%s) seed %-6d %5.1fs  %s  %d attempts, %d orders, %s", r.Config, r.Class, r.Seed, r.Seconds, verdict, r.Attempts, r.Orders, strings.Join(words, ", "))
	for _, v := range r.Broken {
		text += "\n  " + v.String()
	}
	return text
}

// trial runs a schedule once and judges it.
func (o options) trial(c *chaos.Config, seed uint64, schedule chaos.Schedule) *result {
	began := time.Now()
	out, err := c.Perform(o.caddies, seed, schedule)
	r := &result{Config: c.Name, Class: c.Class, Open: c.Open, Commit: rig.Commit(), Seed: seed, Schedule: schedule, outcome: out}
	if out != nil {
		r.Attempts, r.Counts, r.Losses, r.Recovered = len(out.History.Attempts), out.Counts, out.Losses, out.Recovered
		r.Broken, r.Counted, r.Notes = out.Broken, len(out.Counted), out.Notes
		for _, order := range out.History.Orders {
			if order.Taken && !order.Again {
				r.Orders++
			}
		}
		if err == nil && c.Open == "" {
			r.Broken = append(r.Broken, linearizable(out.History)...)
		}
	}
	if err != nil {
		r.Broken = append(r.Broken, auditor.Violation{Promise: "the run came to its end", What: err.Error()})
	}
	r.Seconds = time.Since(began).Round(100 * time.Millisecond).Seconds()
	return r
}

// record appends a result to the file of all results.
func (o options) record(r *result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(o.out, "results.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// explain prints what is needed to see a failure again: the schedule, where the history is,
// and the shortest prefix that fails.
func (o options) explain(c *chaos.Config, r *result) {
	fmt.Printf("\n%s, seed %d: repeat it with\n  make chaos CONFIGS=%s SEED=%d\nschedule:\n%v\n", c.Name, r.Seed, c.Name, r.Seed, r.Schedule)
	name := filepath.Join(o.out, fmt.Sprintf("%s-%d.json", c.Name, r.Seed))
	if text, err := json.MarshalIndent(r.outcome, "", "\t"); err != nil || os.WriteFile(name, text, 0o644) != nil {
		fmt.Printf("the history cannot be written to %s\n", name)
	} else {
		fmt.Printf("history: %s\n", name)
	}
	if o.tries == 0 {
		return
	}
	prefix, fails := o.shortest(c, r)
	fmt.Printf("the shortest prefix found that fails has %d of %d faults, and fails in %d of %d tries:\n%v\n\n", prefix, len(r.Schedule), fails, o.tries, r.Schedule[:prefix])
}

// shortest looks for the shortest prefix of a schedule that fails, and how often it does. A
// prefix that holds in all tries may still fail: the machine decides on races, the seed does not.
func (o options) shortest(c *chaos.Config, r *result) (prefix, fails int) {
	rate := func(n int) (fails int) {
		for range o.tries {
			if again := o.trial(c, r.Seed, r.Schedule[:n]); again.failed() {
				fails++
			}
		}
		return fails
	}
	return shortest(len(r.Schedule), rate)
}

// shortest halves the range in which the shortest failing prefix may be. The whole schedule
// has failed once; rate is how often a prefix fails.
func shortest(whole int, rate func(n int) int) (prefix, fails int) {
	low, high, fails := 0, whole, -1
	for low < high {
		middle := (low + high) / 2
		if n := rate(middle); n > 0 {
			high, fails = middle, n
		} else {
			low = middle + 1
		}
	}
	if fails < 0 {
		fails = rate(high)
	}
	return high, fails
}
