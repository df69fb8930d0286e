package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// counter is one of several sites of one edge, with a sale of its own: for many sites of which none needs a process
// that ends or changes.
type counter struct {
	*edge
	sale string
}

// newCounters prepares an edge with n sites, without starting it.
func newCounters(t *testing.T, n int) []counter {
	t.Helper()
	e := newEdge(t, "")
	all := make([]counter, n)
	for i := range all {
		all[i] = counter{e, fmt.Sprint("flash-", i)}
		if i > 0 { // the process is the first one's
			all[i] = all[i].of(t)
			all[i].addr = freeAddr(t)
			all[i].url = "http://" + all[i].addr
		}
	}
	return all
}

// startCounters starts an edge with these sites.
func startCounters(t *testing.T, sites []site) []counter {
	t.Helper()
	all := newCounters(t, len(sites))
	open(all, sites)
	return all
}

// open starts the edge of counters with a site for each.
func open(all []counter, sites []site) {
	for i := range all {
		all[i].heard = true
	}
	all[0].start(together(all, sites))
}

// reopen gives the running edge of counters other sites.
func reopen(all []counter, sites []site) {
	all[0].mustReload(together(all, sites))
}

// together configures the edge of counters as the first site does, with blocks for the others.
func together(all []counter, sites []site) site {
	var others strings.Builder
	for i, s := range sites[1:] {
		s.sale = all[i+1].sale
		others.WriteString(s.block(all[i+1].edge))
	}
	main := sites[0]
	main.sale, main.others = all[0].sale, main.others+others.String()
	return main
}

// of is the counter for a test of its own.
func (c counter) of(t *testing.T) counter {
	e := *c.edge
	e.t = t
	return counter{&e, c.sale}
}
