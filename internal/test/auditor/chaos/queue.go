package chaos

import (
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
	"github.com/stockgate/stockgate/internal/test/auditor/crowd"
	"github.com/stockgate/stockgate/internal/test/auditor/rig"
)

// queueOptions are those of a gate whose orders wait for the shop, each sale in its own line.
const queueOptions = "pace 50 1s\n\t\t\tat_once 3\n\t\t\twait 6s"

func queueOf(sale string) auditor.Queue {
	return auditor.Queue{Sale: sale, AtOnce: 3, Every: 20 * time.Millisecond}
}

// async reports whether a buyer does not wait for the shop's answer, and asks at a place.
func (r *Run) async(i int) bool { return r.queue && r.chance(3, "async", i) == 0 }

// follow asks at the place that an attempt was told until its order has ended.
func (r *Run) follow(i int, a *auditor.Attempt) {
	if a.Heard == 0 || a.Queue == "" {
		return
	}
	for n, end := 0, time.Now().Add(rig.Patience); time.Now().Before(end); n++ {
		l := r.crowd.Look(r.doors[r.chance(len(r.doors), "look", i, n)], a, []string{"", "1"}[r.chance(2, "patience", i, n)])
		if l.Heard > 0 && l.Status != 503 && l.State != "waiting" && l.State != "at_shop" {
			return
		}
		time.Sleep(time.Duration(50+r.chance(150, "later", i, n)) * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, auditor.Violation{Promise: auditor.NotLost, What: "an order that waited has not ended: " + a.String()})
}

// emptyLines looks for what is left of lines in which every hold has ended.
func (r *Run) emptyLines() {
	for _, sale := range r.sales {
		for _, key := range []string{"line", "orders", "at_shop"} {
			r.until("nothing is left in the "+key+" of "+sale, func() bool {
				home := r.store.home(sale)
				if home == nil {
					return false
				}
				n, err := home.Do("EXISTS", rig.Key(sale, key))
				return err == nil && n == int64(0)
			})
		}
	}
}

// wish is what the i-th buyer wants: with a queue, some do not wait for the answer.
func (r *Run) wish(i int, w crowd.Wish) crowd.Wish {
	if r.async(i) {
		w.Header = []string{"Prefer: respond-async"}
	}
	return w
}
