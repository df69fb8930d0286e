package auditor

import (
	"sort"
	"strconv"
)

// late are refusals that a purchase which was made cannot get any more.
var late = map[string]bool{
	"sold_out": true, "all_held": true, "paused": true, "ended": true, "closed": true, "not_started": true,
	"limit_reached": true, "too_many_unpaid": true, "pending": true, "denied": true, "not_eligible": true, "rate_limited": true, "quantity": true,
	"unknown_item": true, "unknown_sale": true, "unknown_region": true,
}

// repeats are refusals that say that the purchase exists.
var repeats = map[string]bool{"duplicate": true, "in_doubt": true, "already_ordered": true, "pending": true, "key_reused": true}

// judgeKeys: one key is one order, and its buyer gets that answer ever after.
func judgeKeys(h *History, _ map[string]*Replayed) (found []Violation) {
	orders := map[[2]string]*Order{}
	for _, o := range h.Orders {
		if o.Key == "" || !o.Taken || o.Again {
			continue
		}
		k := [2]string{o.Buyer, o.Key}
		if first := orders[k]; first != nil {
			found = append(found, broken(AtMostOnce, "the shop took two orders of buyer %s under the key %s", o.Buyer, o.Key).with(first, o))
		}
		orders[k] = o
	}
	tries := map[[2]string][]*Attempt{}
	for _, a := range h.Attempts {
		if a.Key != "" && a.Heard > 0 {
			k := [2]string{a.Buyer, a.Key}
			tries[k] = append(tries[k], a)
		}
	}
	wrong := map[string][]Violation{}
	for _, list := range tries {
		sort.Slice(list, func(i, j int) bool { return list[i].Heard < list[j].Heard })
		var won *Attempt
		for _, a := range list {
			switch {
			case a.Won() && won == nil:
				won = a
			case a.Won() && !sameOrder(won, a):
				found = append(found, broken(AtMostOnce, "one key got two orders").with(won, a))
			case won != nil && a.Sent > won.Heard && late[a.Reason]:
				wrong[a.Reason] = append(wrong[a.Reason], broken(WinnerHears, "a buyer who had bought under this key heard %s", a.Reason).with(won, a))
			}
		}
	}
	for _, list := range wrong {
		found = append(found, limited(list)...)
	}
	return found
}

// sameOrder reports whether two answers are about one order. An answer without a body, sent
// again, names nothing but the reservation.
func sameOrder(a, b *Attempt) bool {
	if b.Replayed && b.Proof == "" {
		return a.Reservation == b.Reservation
	}
	return a.Proof == b.Proof
}

// judgeAnswers: success is said by the shop alone, a refusal is one, and every other route works.
func judgeAnswers(h *History, _ map[string]*Replayed) []Violation {
	var success, refused, closed, browse []Violation
	proofs, byAttempt, byID := map[string]*Order{}, map[string]*Order{}, map[string]*Order{}
	for _, o := range h.Orders {
		if o.Answer >= 200 && o.Answer < 300 || o.Taken {
			proofs[o.Proof] = o
			byID[o.JTI] = o
		}
		if o.Taken {
			byAttempt[o.Attempt] = o
		}
	}
	for _, a := range h.Attempts {
		if a.Heard == 0 {
			continue
		}
		if a.Browse {
			if away := h.ShopAway && a.Status == 502; !away && (a.Status != 200 || a.Proof != "browse") {
				browse = append(browse, broken(FailClosed, "another route of the site answered %d", a.Status).with(a))
			}
			continue
		}
		o := proofs[a.Proof]
		if a.Replayed && a.Proof == "" { // an answer without a body tells nothing more of the order
			o = byID[a.Reservation]
		}
		switch {
		case a.Won() && o == nil:
			success = append(success, broken(FromTheShop, "a buyer heard %d, and the shop has taken no order of that name", a.Status).with(a))
		case a.Won() && o.Buyer != a.Buyer:
			success = append(success, broken(FromTheShop, "a buyer got the order of another one").with(a, o))
		case a.Reason != "" && !repeats[a.Reason] && byAttempt[a.ID] != nil:
			refused = append(refused, broken(AtMostOnce, "a buyer heard %s, and the shop took the order of this attempt", a.Reason).with(a, byAttempt[a.ID]))
		case a.Status == 503 && a.Reason != "" && a.RetryAfter == "":
			closed = append(closed, broken(FailClosed, "a 503 without Retry-After").with(a))
		case a.Status == 500 && a.Reason == "" && a.Proof == "" && !h.ShopFails:
			closed = append(closed, broken(FailClosed, "a 500 that is no refusal").with(a))
		}
		if n, err := strconv.Atoi(a.RetryAfter); a.RetryAfter != "" && (err != nil || n < 1) {
			closed = append(closed, broken(FailClosed, "Retry-After is %q", a.RetryAfter).with(a))
		}
	}
	var found []Violation
	for _, list := range [][]Violation{success, refused, closed, browse} {
		found = append(found, limited(list)...)
	}
	return found
}
