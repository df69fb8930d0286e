package rehearse

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Result is how a rehearsal ended. Its JSON is stable: fields are added, none changes.
type Result struct {
	Sale string `json:"sale"`
	// Passed: no promise is broken, every requirement is met, and what was sent got an answer.
	Passed bool `json:"passed"`
	// Judged says what was compared: books, or books and orders.
	Judged string   `json:"judged"`
	Hosts  []string `json:"hosts,omitempty"`
	Arrive string   `json:"arrive,omitempty"`
	Buyers int      `json:"buyers,omitempty"`
	Seed   uint64   `json:"seed,omitempty"`
	// ScheduleKept: orders began when they were due; nil: there was no crowd.
	ScheduleKept *bool `json:"schedule_kept,omitempty"`
	// Tally is what the buyers were told; nil: that is not known.
	Tally *stampede.Tally `json:"tally,omitempty"`
	// Units is the sum of the sale's cells at the end.
	Units        Units              `json:"units"`
	Orders       *int               `json:"orders,omitempty"`
	Oversold     int64              `json:"oversold"`
	Promises     []stampede.Promise `json:"promises"`
	Requirements []Requirement      `json:"requirements"`
	// Notes are what an operator should know besides.
	Notes []string `json:"notes"`

	evidence *stampede.Evidence
	verdict  *stampede.CheckResult
	failures []string
}

// Units are those of a sale by column.
type Units struct {
	Stock     int64 `json:"stock"`
	Available int64 `json:"available"`
	Held      int64 `json:"held"`
	InDoubt   int64 `json:"in_doubt"`
	Sold      int64 `json:"sold"`
}

const (
	judgedBooks  = "books"
	judgedOrders = "books and orders"
)

func (r *Rehearsal) result(e *stampede.Evidence, v *stampede.CheckResult, status string) *Result {
	var sum record.Cell
	for _, c := range e.Stock.Items {
		sum.Add(c)
	}
	out := &Result{
		Sale: r.Sale, Judged: judgedOrders, Arrive: r.Arrive, Buyers: r.Buyers, Tally: e.Tally, Oversold: v.Oversold,
		Units:    Units{sum.Stock, sum.Available, sum.Held, sum.InDoubt, sum.Confirmed},
		Promises: v.Promises, Requirements: []Requirement{}, Notes: []string{}, evidence: e, verdict: v,
	}
	if e.NoOrders {
		out.Judged = judgedBooks
		if r.Orders == "" {
			out.note("only the gate's books were judged: name the shop's orders with --orders to compare them")
		}
	} else {
		out.Orders = &v.Orders
	}
	for _, p := range v.Promises {
		if p.State == stampede.Broken {
			out.fail("broken: " + p.Name)
		}
	}
	if e.Tally != nil && e.Tally.Answered() == 0 {
		out.fail(stampede.NoAnswer)
	}
	for _, one := range r.requirements {
		one.measure(e.Tally, sum)
		out.Requirements = append(out.Requirements, one)
		if !one.Met {
			out.fail(fmt.Sprintf("%s is not met: %s", one.Text, one.Measured))
		}
	}
	if sum.Held > 0 {
		out.note("%d units are still held: 'caddy stockgate holds %s --state held' lists them; --settle waits longer", sum.Held, r.Sale)
	}
	if sum.InDoubt > 0 {
		out.note("%d units are in doubt: 'caddy stockgate holds %s' lists them", sum.InDoubt, r.Sale)
	}
	if !r.JudgeOnly {
		out.ofCrowd(r, status)
	}
	out.Passed = len(out.failures) == 0
	return out
}

// ofCrowd adds what is known where this process sent the crowd.
func (out *Result) ofCrowd(r *Rehearsal, status string) {
	t := out.Tally
	out.Hosts, out.Seed = r.hosts.origins(), r.Seed
	kept := t.Late.P99 <= MaxLate
	out.ScheduleKept = &kept
	if !kept {
		out.note("this machine did not keep the schedule: 1 %% of the orders began more than %v late, the last one %v; latencies include it. Use a faster machine, or several, or fewer buyers",
			t.Late.P99.Round(time.Millisecond), t.Late.Max.Round(time.Millisecond))
	}
	if status != "open" {
		out.note("the sale was %s when the crowd came", status)
	}
	for _, to := range slices.Sorted(maps.Keys(t.Redirects)) {
		if r.hosts.has(to) {
			out.note("%d answers redirect to %s: no redirect is followed", t.Redirects[to], to)
		} else {
			out.note("%d answers redirect to %s, which no --host names: refused, no request was sent there", t.Redirects[to], to)
		}
	}
}

func (out *Result) note(format string, args ...any) {
	out.Notes = append(out.Notes, fmt.Sprintf(format, args...))
}

func (out *Result) fail(why string) {
	out.Passed = false
	out.failures = append(out.failures, why)
}

// Err is why the rehearsal has not passed; nil: it has.
func (out *Result) Err() error {
	if out.Passed {
		return nil
	}
	return fmt.Errorf("not passed: %s", strings.Join(out.failures, "; "))
}

// WriteTo writes the result for people.
func (out *Result) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	numbers := *out.verdict
	numbers.Violations = nil // they come with their promises
	if _, err := (stampede.Report{Tally: out.Tally, Evidence: out.evidence, Verdict: &numbers}).WriteTo(&b); err != nil {
		return 0, err
	}
	b.WriteString("\npromises, by the " + out.Judged + "\n")
	for _, p := range out.Promises {
		state, why := p.State, ""
		if p.State == stampede.Broken {
			state = "BROKEN"
		}
		if p.Why != "" {
			why = ": " + p.Why
		}
		fmt.Fprintf(&b, "  %-10s %s%s\n", state, p.Name, why)
		for _, v := range p.Violations {
			fmt.Fprintf(&b, "               - %s\n", v)
		}
	}
	if len(out.Requirements) > 0 {
		b.WriteString("\nrequirements\n")
	}
	for _, r := range out.Requirements {
		state := "met"
		if !r.Met {
			state = "NOT MET"
		}
		fmt.Fprintf(&b, "  %-10s %s: %s\n", state, r.Text, r.Measured)
	}
	for i, note := range out.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// progress writes how far the crowd has come.
func (r *Rehearsal) progress(p stampede.Progress) {
	line := fmt.Sprintf("%v: sent %s, waiting %s, yes %s, refused %s, no answer %s, p99 %v, late %v", p.Elapsed.Round(100*time.Millisecond), stampede.Count(p.Sent),
		stampede.Count(p.Waiting), stampede.Count(p.Accepted), stampede.Count(p.Refused), stampede.Count(p.Failed), p.P99.Round(time.Millisecond), p.Late.Round(time.Millisecond))
	if r.Rewrite {
		fmt.Fprintf(r.Progress, "\r\033[K%s", line)
		return
	}
	fmt.Fprintln(r.Progress, line)
}
