package auditor

import (
	"fmt"
	"strings"
)

// judgeCharges: each counter of a limit is what its reservations cost; what was refused,
// released or expired costs nothing. A counter whose window is over may be gone, and with
// returned units a part is given back: those are left out.
func judgeCharges(s *Shard, b *Replayed) (found []Violation) {
	charged, pending := map[string]int64{}, map[string]int64{}
	skip := map[string]bool{}
	for id, state := range b.States {
		units, err := ParseUnits(recordField(b.Held[id], 9))
		if err != nil {
			found = append(found, broken(ChargesNone, "the charges of reservation %s: %v", id, err))
			continue
		}
		for _, c := range units {
			skip[c.Cell] = skip[c.Cell] || b.Back[id]
			switch state {
			case "held", "in_doubt":
				pending[c.Cell] += c.Qty
				charged[c.Cell] += c.Qty
			case "confirmed":
				charged[c.Cell] += c.Qty
			}
		}
	}
	for field := range charged {
		if _, kept := s.Limits[field]; !kept && strings.Contains(field, "|-|") && !skip[field] {
			found = append(found, broken(ChargesNone, "the limit %s of sale %s has no counter; its reservations cost %d", field, s.Sale, charged[field]))
		}
	}
	for field, have := range s.Limits {
		if want := fmt.Sprintf("%d %d", charged[field], pending[field]); want != have && !skip[field] {
			found = append(found, broken(ChargesNone, "the limit %s of sale %s counts %q (charged, pending); its reservations cost %q", field, s.Sale, have, want))
		}
	}
	return limited(found)
}

// judgeLimits: no buyer has more than the limit, and no buyer hears that the limit is reached
// whose attempts cannot have reached it. Only what a buyer asked before counts.
func judgeLimits(h *History, _ map[string]*Replayed) (found []Violation) {
	if h.Max == 0 {
		return nil
	}
	bought, asked := map[string]int64{}, map[string][]*Attempt{}
	for _, o := range h.Orders {
		if o.Taken && !o.Again {
			bought[o.Buyer] += units(o.Lines)
		}
	}
	for buyer, n := range bought {
		if n > h.Max {
			found = append(found, broken(ChargesNone, "buyer %s has %d units at the shop; the limit is %d", buyer, n, h.Max))
		}
	}
	for _, a := range h.Attempts {
		asked[a.Buyer] = append(asked[a.Buyer], a)
	}
	for buyer, list := range asked {
		for _, a := range list {
			if a.Reason != "limit_reached" {
				continue
			}
			may := units(a.Lines)
			for _, other := range list {
				if other != a && !other.Browse && other.Sent < a.Heard && !refusedBefore(other, a) {
					may += units(other.Lines)
				}
			}
			if may <= h.Max {
				found = append(found, broken(ChargesNone, "buyer %s heard limit_reached; all attempts that can have cost something ask for %d units, the limit is %d", buyer, may, h.Max).with(a))
			}
		}
	}
	return limited(found)
}

// refusedBefore reports whether an attempt was refused at the edge before another one was sent:
// then it had cost nothing.
func refusedBefore(a, next *Attempt) bool {
	return a.Heard > 0 && a.Heard < next.Sent && a.Reason != "" && !repeats[a.Reason] && a.Reason != "unavailable" && a.Reason != "busy"
}

func units(lines []Line) (n int64) {
	for _, l := range lines {
		n += l.Qty
	}
	return n
}
