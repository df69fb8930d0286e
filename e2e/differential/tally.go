package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// count is what became of the requests to one shop or of one route.
type count struct{ sent, refused, closed, forwarded, agreed, unread, rejected, unanswered int }

func (c *count) add(o count) {
	c.sent += o.sent
	c.refused += o.refused
	c.closed += o.closed
	c.forwarded += o.forwarded
	c.agreed += o.agreed
	c.unread += o.unread
	c.rejected += o.rejected
	c.unanswered += o.unanswered
}

// tally gathers all that is counted.
type tally struct {
	sync.Mutex
	order      []*shop
	shops      map[string]*count
	routes     map[string]*count
	reasons    map[string]int
	generated  int
	mismatches int
	trouble    error
}

func newTally(shops []*shop) *tally {
	t := &tally{order: shops, shops: make(map[string]*count), routes: make(map[string]*count), reasons: make(map[string]int)}
	for _, s := range shops {
		t.shops[s.name] = new(count)
	}
	for i := range routes {
		t.routes[routes[i].name] = new(count)
	}
	return t
}

func (t *tally) note(s *shop, r *route, c count, reason string) {
	t.Lock()
	defer t.Unlock()
	t.shops[s.name].add(c)
	t.routes[r.name].add(c)
	if reason != "" {
		t.reasons[reason]++
	}
}

var errEnough = errors.New("enough mismatches")

// report prints a mismatch with what every shop reads in the request.
func (t *tally) report(g *gate, shops []*shop, s *shop, q *request, seed, i uint64, raw []byte, got *response, wrong string, keep int) error {
	t.Lock()
	defer t.Unlock()
	t.mismatches++
	if t.mismatches > keep {
		return errEnough
	}
	fmt.Printf("\nMISMATCH at %s in the gate %s (-seed %d -only %d): %s\n%q\n", s.name, q.route.name, seed, i, wrong, raw)
	if claims, err := g.claims(got.answer); err == nil && claims != nil {
		fmt.Printf("token: buyer %q, lines %v\n", claims.Subject, claims.Lines)
	}
	for _, other := range shops {
		show(other, q, raw)
	}
	if t.mismatches == keep {
		return errEnough
	}
	return nil
}

func show(s *shop, q *request, raw []byte) {
	l := &lane{port: s.site}
	defer l.close()
	got, ok, err := l.exchange(q, raw)
	if err != nil || !ok {
		fmt.Printf("%s: no answer: %v\n", s.name, err)
		return
	}
	fmt.Printf("%s: %d %s\n", s.name, got.status, readable(got.raw))
}

// readable leaves the token out of a shop's answer.
func readable(raw []byte) string {
	s := strings.TrimSpace(string(raw))
	if _, rest, found := strings.Cut(s, `"readings":`); found {
		s = rest
	}
	if len(s) > 3000 {
		s = s[:3000] + " …"
	}
	return s
}

// verdict is the error of a run that has found something, or that has shown nothing.
func (t *tally) verdict() error {
	err := t.trouble
	if t.mismatches > 0 {
		err = errors.Join(err, fmt.Errorf("%d mismatches", t.mismatches))
	}
	for _, s := range t.order {
		c := t.shops[s.name]
		if c.agreed == 0 {
			err = errors.Join(err, fmt.Errorf("%s has read no order at all", s.name))
		}
		if c.unanswered > c.forwarded/50 {
			err = errors.Join(err, fmt.Errorf("%s did not answer %d of %d forwarded requests", s.name, c.unanswered, c.unanswered+c.forwarded))
		}
	}
	for i := range routes {
		if name := routes[i].name; t.routes[name].agreed == 0 {
			err = errors.Join(err, fmt.Errorf("no order went through the gate %s", name))
		}
	}
	return err
}

func (t *tally) print(out io.Writer, o options, took time.Duration) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, c *count) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, c.sent, c.refused, c.closed, c.forwarded, c.agreed, c.unread, c.rejected, c.unanswered)
	}
	header := func(what string) {
		fmt.Fprintf(w, "%s\tsent\trefused\tclosed\tforwarded\tread as the token says\tread as no order\trejected by the shop\tunanswered\t\n", what)
	}
	header("shop")
	var sum count
	for _, s := range t.order {
		row(s.name, t.shops[s.name])
		sum.add(*t.shops[s.name])
	}
	row("all", &sum)
	header("gate")
	for i := range routes {
		row(routes[i].name, t.routes[routes[i].name])
	}
	w.Flush()
	reasons := make([]string, 0, len(t.reasons))
	for reason, n := range t.reasons {
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(reasons)
	fmt.Fprintf(out, "reasons: %s\n", strings.Join(reasons, ", "))
	fmt.Fprintf(out, "seed %d: %d generated, %d sent in %v (%.0f a second), %d mismatches\n", o.seed, t.generated, sum.sent, took.Round(time.Second), float64(sum.sent)/took.Seconds(), t.mismatches)
}
