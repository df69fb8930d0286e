package learn

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// chooseOrder finds the order request of the first recording, and the same one in the others.
func (l *learner) chooseOrder() error {
	all := l.candidates(l.recordings[0])
	if l.options.Order > 0 {
		all = slices.DeleteFunc(l.everyChange(), func(c *candidate) bool { return c.Entry != l.options.Order })
		if len(all) == 0 {
			return fmt.Errorf("entry %d of %s is no request that may place an order: name a POST, PUT or PATCH", l.options.Order, l.recordings[0].File)
		}
	}
	if len(all) == 0 {
		return l.noOrder()
	}
	l.order = all[0]
	if err := l.unmixed(all); err != nil {
		return err
	}
	for _, other := range all[1:] {
		if other.shape() != l.order.shape() && other.score >= l.order.score-4 {
			l.rivals = append(l.rivals, other)
		}
	}
	return l.chooseOthers()
}

// everyChange returns all requests of the first recording that may change something.
func (l *learner) everyChange() (all []*candidate) {
	for _, x := range l.recordings[0].Exchanges {
		if x.changes() {
			op, _ := l.documents.operation(x)
			c := &candidate{Exchange: x, op: op}
			c.rate(l.site)
			all = append(all, c)
		}
	}
	return all
}

// unmixed refuses a recording of two purchases. The same request twice is one purchase if one was refused.
func (l *learner) unmixed(all []*candidate) error {
	for _, other := range all[1:] {
		if other.shape() != l.order.shape() {
			continue
		}
		if other.ref != "" && l.order.ref != "" && other.ref != l.order.ref && other.Status == l.order.Status {
			first, second := min(other.Entry, l.order.Entry), max(other.Entry, l.order.Entry)
			return fmt.Errorf("%s has two purchases, entries %d and %d: record one purchase in each file, and give all the files", l.order.File, first, second)
		}
		if other.Status != l.order.Status || other.ref == "" {
			if l.order.ref == "" && other.ref != "" {
				l.order, other = other, l.order
			}
			l.refused = append(l.refused, other)
		}
	}
	return nil
}

// noOrder says that a recording has no purchase, and why perhaps.
func (l *learner) noOrder() error {
	rec := l.recordings[0]
	if len(l.hashes) > 0 {
		x := l.hashes[len(l.hashes)-1]
		return fmt.Errorf("%s has only the hash of its GraphQL document, and no recorded request has the document: give the recording in which the client sends it, "+
			"which it does once to a server that does not know the hash, or configure the gate by hand with `persisted`", x.Name())
	}
	changes := 0
	for _, x := range rec.Exchanges {
		if x.changes() {
			changes++
		}
	}
	return fmt.Errorf("%s has no purchase: none of its %d requests that may change something looks like an order. Record from the cart to the page of thanks, "+
		"with \"Preserve log\" (Chrome) or \"Persist Logs\" (Firefox); or name the request with --order <entry>", rec.File, changes)
}

// chooseOthers finds the order in the other recordings. One that was answered otherwise is a refusal.
func (l *learner) chooseOthers() error {
	for _, rec := range l.recordings[1:] {
		all := l.candidates(rec)
		i := slices.IndexFunc(all, func(c *candidate) bool { return c.shape() == l.order.shape() })
		if i < 0 {
			return fmt.Errorf("%s has no request like %s: record the same purchase at the same shop", rec.File, l.order.Name())
		}
		if same := l.order; all[i].Status == same.Status && (all[i].ref != "") == (same.ref != "") {
			l.again = append(l.again, all[i])
		} else {
			l.refused = append(l.refused, all[i])
		}
	}
	return nil
}

func (l *learner) isProvider(host string) bool {
	return slices.ContainsFunc(providers, func(p string) bool { return host == p || strings.HasSuffix(host, "."+p) })
}

// siteOf returns what hosts of one shop have in common: the host without its subdomains. It is a guess, from
// which nothing is written.
func siteOf(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	labels := strings.Split(strings.ToLower(host), ".")
	keep := 2
	if n := len(labels); n > 2 && len(labels[n-1]) == 2 && len(labels[n-2]) <= 3 {
		keep = 3
	}
	return strings.Join(labels[max(0, len(labels)-keep):], ".")
}
