package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

const (
	limitPhone = "limits: [{per: phone, every: sale, count: units, max: 2}]\n"
	perPhone   = limitPhone + "waitlist: {}"
)

// readers has a handler of each kind; phone is what each of them says of the phone.
func readers(gate, check, list string) string {
	return sitetest.OrderMatcher + `stockgate_guard
	@cart {
		path /cart
		method POST
	}
	stockgate_check @cart cart {
		buyer {header.X-User-Id}
		line {json.sku}
		` + check + `
	}
	stockgate_waitlist /waitlist* wait {
		buyer {header.X-User-Id}
		line {json.sku}
		` + list + `
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku}
		` + gate + `
	}
	respond 201`
}

// All handlers of a sale with a waiting list read the identities by which it knows people: loading a configuration, applying
// a file and the doctor agree.
func TestHandlersReadWhoWaits(t *testing.T) {
	const phone = "identity phone {header.X-Phone}"
	s := sitetest.OpenCaddyfile(t, readers(phone, phone, phone))
	says := func(line string) {
		sitetest.Do[any](s, "PUT", "/stockgate/sales/double11?force=true", sitetest.SaleFile+line+"\n")
		s.Refresh()
	}
	says(perPhone)
	for name, site := range map[string]string{"the gate main": readers("", phone, phone), "the gate cart": readers(phone, "", phone), "the stockgate_waitlist wait": readers(phone, phone, "")} {
		err := s.LoadCaddyfile(site)
		if err == nil || !strings.Contains(err.Error(), "the sale double11 has a waiting list and knows people by phone, which "+name+" does not read: add `identity phone <value>` there") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, site := range map[string]string{
		"a gate of another sale":                   readers("sale other", phone, phone),
		"a gate in shadow":                         readers("shadow", phone, phone),
		"a check that lets requests of carts wait": strings.Replace(readers(phone, phone, phone), "respond", "stockgate_check /cart/* turns {\none_at_a_time {header.X-User-Id}\n}\nrespond", 1),
	} {
		if err := s.LoadCaddyfile(site); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	says("waitlist: {}")
	if err := s.LoadCaddyfile(readers("", "", "")); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"?force=true", "?force=true&dry_run=true"} {
		a := s.Admin("PUT", "/stockgate/sales/double11"+query, sitetest.SaleFile+perPhone+"\n")
		if a.Status != http.StatusBadRequest || strings.Count(a.Body, "does not read") != 3 {
			t.Errorf("apply%s: %d %s", query, a.Status, a.Body)
		}
	}
	if a := s.Admin("GET", "/stockgate/doctor", ""); strings.Contains(a.Body, "does not read") {
		t.Errorf("the doctor finds %s", a.Body)
	}
	says(limitPhone) // without a list, the doctor warns of it
}

// People enter with the one item of a cart that a sale lists, as the shop says it in their name.
func TestEnterByLookup(t *testing.T) {
	shop := newCartShop(t)
	s := sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+`stockgate_guard
	stockgate_waitlist /waitlist* wait {
		buyer {lookup.cart.email}
		lines {lookup.cart.items} variant.sku quantity
		other_items pass
		lookup GET `+shop.URL+`/cart {
			timeout 20s
		}
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		outcome backend
	}
	respond 201`)
	fileSays(s, "waitlist: {}")
	orders(s, "ann", `{"sku":"few","quantity":3}`).Is(t, http.StatusCreated, "")
	enter := func(session string) sitetest.Answer {
		r := sitetest.NewOrder()
		r.URL.Path = "/waitlist"
		if session != "" {
			r.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		return s.Send(r)
	}
	for session, cart := range map[string]map[string]int64{
		"ben": {"few": 2}, "cid": {"few": 1, "a book": 3}, "dan": {"few": 1, "plain": 1}, "eve": {"a book": 1}, "fay": {}, "gil": {"plain": 1},
	} {
		for sku, n := range cart {
			shop.put(session, sku, n)
		}
	}
	for session, want := range map[string]string{"ben": "", "cid": "", "dan": "malformed", "eve": "unknown_item", "": "no_buyer", "gil": "available"} {
		a := enter(session)
		if got := a.Header.Get("Stockgate-Refusal"); got != want || want == "" && a.Status != http.StatusCreated {
			t.Errorf("%s: %d %q %s", session, a.Status, got, a.Body)
		}
		if session == "dan" && !strings.Contains(a.Body, "one item at a time can be waited for") {
			t.Errorf("two items: %s", a.Body)
		}
	}
	if a := enter("fay"); a.Status < 400 {
		t.Errorf("an empty cart: %d %s", a.Status, a.Body)
	}
	ben := waiting{s, enter("ben").Header.Get("Location")}
	if told := ben.hears("waiting"); told.SKU != "few" || told.Quantity != 2 {
		t.Errorf("ben is told %+v", told)
	}
	shop.set(func() {
		shop.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	})
	if a := enter("hal"); a.Status != http.StatusServiceUnavailable || a.Header.Get("Stockgate-Refusal") != "unavailable" {
		t.Errorf("the shop fails: %d %s", a.Status, a.Body)
	}
	if told := ben.hears("waiting"); told.Place == 0 {
		t.Errorf("ben is told %+v", told)
	}
}

// The same idempotency key finds the same entry, and the same order once its offer is accepted.
func TestWaitlistUnderAKey(t *testing.T) {
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	s := sitetest.OpenCaddyfile(t, strings.Replace(waitingSite(shop.Addr(), ""), "outcome backend", "idempotency {header.Idempotency-Key}\noutcome backend", 1))
	fileSays(s, "waitlist: {}")
	first := orders(s, "ann", `{"sku":"few","quantity":3}`)
	order := func() sitetest.Answer { return s.Send(keyed("ben", "k1", `{"sku":"few","quantity":1}`)) }
	stocktest.Eventually(t, "that no unit is free", func() bool { return order().Header.Get("Stockgate-Refusal") == "all_held" })
	ben, _ := enters(s, "ben", `{"sku":"few"}`)
	if again, a := enters(s, "ben", `{"sku":"few","quantity":2}`); a.Status != http.StatusOK || again.place != ben.place {
		t.Errorf("%d %s, %q instead of %q", a.Status, a.Body, again.place, ben.place)
	}
	ben.hears("waiting")
	order().Is(t, http.StatusConflict, "not_your_turn")
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+first.Header.Get("Stockgate-Reservation")+"/release?force=true", "")
	ben.hears("offered")
	bought := order()
	bought.Is(t, http.StatusCreated, "")
	for range 2 {
		checkReplayed(t, order(), bought)
	}
	if told := ben.hears("ended"); told.Why != "accepted" {
		t.Errorf("ben is told %+v", told)
	}
}
