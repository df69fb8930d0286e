package edgeruntime

import "sync"

// identityRules remembers by what rules the buyers of open sales were counted, over reloads. Redis has
// hashes only: it cannot count them by other rules.
type identityRules struct {
	mu      sync.Mutex
	known   bool
	now     string
	counted map[string]string // by sale
}

// ReadBy notes by what rules a configuration reads identities, and which sales are open. It returns the sales
// whose buyers were counted by other rules in this process.
func (d *Runtime) ReadBy(rules string, open []string) (otherwise []string) {
	r := &d.identities
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counted == nil {
		r.counted = make(map[string]string)
	}
	for _, id := range open {
		was, has := r.counted[id]
		if !has && r.known {
			was, has = r.now, true
			r.counted[id] = was
		}
		if has && was != rules {
			otherwise = append(otherwise, id)
		}
	}
	r.known, r.now = true, rules
	return otherwise
}

// CountedBy returns the rules by which the buyers of a sale were counted before a reload; changed: they are
// other ones now.
func (d *Runtime) CountedBy(saleID string) (rules string, changed bool) {
	r := &d.identities
	r.mu.Lock()
	defer r.mu.Unlock()
	rules, has := r.counted[saleID]
	return rules, has && rules != r.now
}
