package shopapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/token"
)

// signToken signs a token as the gate does, of one unit of plain for buyer-7.
func signToken(t *testing.T, id string, expiresIn time.Duration, epoch int64) string {
	t.Helper()
	return signClaims(t, token.Claims{
		Subject: "buyer-7", ID: id, IssuedAt: time.Now().Add(-time.Hour).Unix(), ExpiresAt: time.Now().Add(expiresIn).Unix(),
		Epoch: epoch, Sale: "double11", Lines: []sale.Line{{SKU: "plain", Quantity: 1}},
	}, sitetest.APISecret, "order-backend")
}

func signClaims(t *testing.T, claims token.Claims, secret, audience string) string {
	t.Helper()
	key, err := token.ParseKey(token.KindHMAC, secret)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := token.NewSigner("", audience, key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// Every operation in every state: what the shop is answered, and that a repeated request
// changes nothing.
func TestAPIInEveryState(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	ctx := t.Context()
	n := 0
	// every case has a reservation of its own, of one unit
	make := map[string]func(id string){
		"held":     func(id string) { p.Hold(id, "plain", 1, time.Hour) },
		"in_doubt": func(id string) { p.Hold(id, "plain", 1, time.Hour); p.Must(p.Doubt(ctx, "double11", id, "timeout")) },
		"confirmed": func(id string) {
			p.Hold(id, "plain", 1, time.Hour)
			p.Must(p.Confirm(ctx, "double11", id, reservation.SourceShop, "x"))
		},
		"released": func(id string) {
			p.Hold(id, "plain", 1, time.Hour)
			p.Must(p.Release(ctx, "double11", id, reservation.SourceShop, "x"))
		},
		"expired": func(id string) { p.LetExpire(id, "plain") },
		"unknown": func(string) {},
	}
	const cannot = "409 conflict "
	for _, test := range []struct{ state, operation, body, want string }{
		{"held", "confirm", "", "200 confirmed"},
		{"in_doubt", "confirm", "", "200 confirmed"},
		{"confirmed", "confirm", "", "200 confirmed"},
		{"released", "confirm", "", cannot + "released"},
		{"expired", "confirm", "", "200 confirmed"}, // the units are still there
		{"unknown", "confirm", "", "404 not_found "},

		{"held", "release", "", "200 released"},
		{"in_doubt", "release", "", "200 released"},
		{"confirmed", "release", "", cannot + "confirmed"},
		{"released", "release", "", "200 released"},
		{"expired", "release", "", "200 released"},
		{"unknown", "release", "", "404 not_found "},

		{"held", "extend", `{"hold_for":"30m"}`, "200 held"},
		{"in_doubt", "extend", `{"hold_for":"30m"}`, cannot + "in_doubt"},
		{"confirmed", "extend", `{"hold_for":"30m"}`, cannot + "confirmed"},
		{"released", "extend", `{"hold_for":"30m"}`, cannot + "released"},
		{"expired", "extend", `{"hold_for":"30m"}`, cannot + "expired"},
		{"unknown", "extend", `{"hold_for":"30m"}`, "404 not_found "},

		{"held", "return", `{"id":"a"}`, cannot + "held"},
		{"in_doubt", "return", `{"id":"a"}`, cannot + "in_doubt"},
		{"confirmed", "return", `{"id":"a"}`, "200 confirmed"},
		{"released", "return", `{"id":"a"}`, cannot + "released"},
		{"expired", "return", `{"id":"a"}`, cannot + "expired"},
		{"unknown", "return", `{"id":"a"}`, "404 not_found "},
	} {
		n++
		id := fmt.Sprint("case", n)
		make[test.state](id)
		for _, query := range []string{"", "", "?sale=double11"} {
			a := s.API("POST", "/reservations/"+id+"/"+test.operation+query, test.body)
			got := fmt.Sprint(a.Status, " ")
			if a.Status == http.StatusOK {
				got += string(sitetest.RecordOf(t, a).State)
			} else {
				problem := sitetest.ProblemOf(t, a)
				got += problem.Reason + " " + problem.State
			}
			if got != test.want {
				t.Errorf("%s %s: %s, not %s: %s", test.operation, test.state, got, test.want, a.Body)
			}
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); !b.Balanced {
		t.Errorf("%+v", b)
	}
}

// The shop cannot confirm an expired reservation that it has released: its units are on sale
// again.
func TestAPIReleasedAfterItExpired(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.LetExpire("late", "plain")
	for range 2 {
		if r := sitetest.RecordOf(t, s.API("POST", "/reservations/late/release", "")); r.State != record.Released || r.Cause != "api" {
			t.Errorf("%+v", r)
		}
	}
	for range 2 {
		a := s.API("POST", "/reservations/late/confirm", "")
		if problem := sitetest.ProblemOf(t, a); a.Status != http.StatusConflict || problem.Reason != "conflict" || problem.State != "released" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); !b.Balanced {
		t.Errorf("%+v", b)
	}
}

// The shop gives back all of an order that has more than was held: the reservation names the one of
// the rest, and each return counts once.
func TestAPIReturnsAllThatWasSold(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.HoldRef("r1", "SO-1", "plain")
	order := reservation.ShopOrder{Lines: []sale.Line{{SKU: "plain", Quantity: 3}}}
	if _, err := p.Resolve(t.Context(), "double11", order.Sale("r1", reservation.SourceAnswer, "asked_sold")); err != nil {
		t.Fatal(err)
	}
	more := reservation.MoreOf("r1")
	for _, path := range []string{"/reservations/r1", "/reservations/r1?sale=double11", "/refs/SO-1"} {
		if r := sitetest.RecordOf(t, s.API("GET", path, "")); r.ID != "r1" || r.More != more {
			t.Errorf("%s: %+v, want more %s", path, r, more)
		}
	}
	if r := sitetest.RecordOf(t, s.API("POST", "/refs/SO-1/confirm", "")); r.More != more {
		t.Errorf("%+v", r)
	}
	if r := sitetest.Do[reservation.Record](s, "GET", "/stockgate/reservations/r1", ""); r.More != more {
		t.Errorf("%+v", r)
	}
	if out := s.OK("reservation", "show", "r1"); !strings.Contains(out, more) {
		t.Errorf("it does not name %s:\n%s", more, out)
	}
	for range 2 {
		r := sitetest.RecordOf(t, s.API("POST", "/refs/SO-1/return", `{"id":"all","restock":true}`))
		if r.More != more {
			t.Errorf("%+v", r)
		}
		if rest := sitetest.RecordOf(t, s.API("POST", "/reservations/"+r.More+"/return", `{"id":"all","restock":true}`)); rest.More != "" || len(rest.Returned) != 1 || rest.Returned[0].Quantity != 2 {
			t.Errorf("%+v", rest)
		}
	}
	if got := s.StockOf("plain"); got != "100 100 0 0 0" {
		t.Errorf("stock %s", got)
	}
}

// A release by a ref that comes twice does not take away what the token of an earlier cart names.
func TestAPIReleaseByRefTwice(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	first := sitetest.SwappedCart(t, p)
	for range 3 {
		if r := sitetest.RecordOf(t, s.API("POST", "/refs/SO-1/release", "")); r.ID != "B" || r.State != record.Released || r.Cause != "api" {
			t.Errorf("%+v", r)
		}
		if r := sitetest.RecordOf(t, s.API("GET", "/refs/SO-1", "")); r.ID != "B+" || r.State != record.Held {
			t.Errorf("%+v", r)
		}
	}
	if got := s.StockOf("few"); got != "3 1 2 0 0" {
		t.Errorf("stock %s", got)
	}
	signed := signClaims(t, token.Claims{
		Subject: "b", ID: "A", IssuedAt: first.Created.Unix(), ExpiresAt: first.Exp.Unix(), Epoch: first.Epoch, Sale: "double11",
		Ref: "SO-1", Lines: []sale.Line{{SKU: "few", Quantity: 2}},
	}, sitetest.APISecret, "order-backend")
	if r := sitetest.RecordOf(t, s.API("POST", "/reservations/A/confirm", `{"token":"`+signed+`"}`)); r.State != record.Confirmed {
		t.Errorf("%+v", r)
	}
	if got := s.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

// What is held for the token of an earlier cart is released by its id.
func TestAPIReleaseOfWhatIsHeldAgain(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	sitetest.SwappedCart(t, p)
	sitetest.RecordOf(t, s.API("POST", "/refs/SO-1/release", ""))
	for range 2 {
		if r := sitetest.RecordOf(t, s.API("POST", "/reservations/B+/release", "")); r.State != record.Released {
			t.Errorf("%+v", r)
		}
	}
	if got := s.StockOf("few"); got != "3 3 0 0 0" {
		t.Errorf("stock %s", got)
	}
}

func TestAPIRefundNeeded(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.LetExpire("late", "few")
	p.Hold("others", "few", 3, time.Hour)
	for range 2 {
		a := s.API("POST", "/reservations/late/confirm", "")
		if problem := sitetest.ProblemOf(t, a); a.Status != 409 || problem.Reason != "refund_needed" || problem.State != "expired" {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	p.Must(p.Release(t.Context(), "double11", "others", reservation.SourceShop, "x"))
	if r := sitetest.RecordOf(t, s.API("POST", "/reservations/late/confirm", "")); r.State != record.Confirmed || r.Cause != "api" {
		t.Errorf("%+v", r)
	}
}

func TestAPIReturns(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.Hold("r", "plain", 5, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "r", reservation.SourceShop, "x"))
	for _, step := range []struct{ body, want string }{
		{`{"id":"one","lines":[{"sku":"plain","qty":1}]}`, "200 1"},
		{`{"id":"one","lines":[{"sku":"plain","qty":1}]}`, "200 1"},
		{`{"id":"one","lines":[{"sku":"plain","qty":2}]}`, "422 key_reused"},
		{`{"id":"one","lines":[{"sku":"plain","qty":1}],"restock":false}`, "422 key_reused"},
		{`{"id":"two","lines":[{"sku":"plain","qty":1},{"sku":"plain","qty":1}],"restock":false}`, "200 3"},
		{`{"id":"three","lines":[{"sku":"plain","qty":3}]}`, "409 too_many"},
		{`{"id":"three","lines":[{"sku":"few","qty":1}]}`, "409 too_many"},
		{`{"id":"three"}`, "200 5"},
		{`{"id":"one","lines":[{"sku":"plain","qty":1}]}`, "200 5"},
		{`{"id":"four"}`, "409 too_many"},
	} {
		a := s.API("POST", "/reservations/r/return", step.body)
		got := fmt.Sprint(a.Status, " ")
		if a.Status == http.StatusOK {
			r := sitetest.RecordOf(t, a)
			if len(r.Returned) != 1 || r.State != record.Confirmed {
				t.Fatalf("%+v", r)
			}
			got += fmt.Sprint(r.Returned[0].Quantity)
		} else {
			got += sitetest.ProblemOf(t, a).Reason
		}
		if got != step.want {
			t.Errorf("%s: %s, not %s: %s", step.body, got, step.want, a.Body)
		}
	}
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := b.Cell("plain", ""); got != "98 98 0 0 0" || !b.Balanced {
		t.Errorf("%s %+v", got, b)
	}
}

func TestAPIExtends(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"max_hold: 20m\n")
	p.Hold("r", "plain", 1, time.Minute)
	before := sitetest.RecordOf(t, s.API("GET", "/reservations/r", ""))
	extend := func(body string) (r struct {
		reservation.Record
		Token string
	}) {
		t.Helper()
		a := s.API("POST", "/reservations/r/extend", body)
		if a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	ten := extend(`{"hold_for":"10m"}`)
	if moved := ten.Deadline.Sub(before.Deadline); moved < 9*time.Minute || moved > 11*time.Minute || ten.Token != "" {
		t.Errorf("moved by %v: %+v", moved, ten)
	}
	if again := extend(`{"hold_for":"5m"}`); !again.Deadline.Equal(ten.Deadline) {
		t.Errorf("the deadline came nearer: %v, was %v", again.Deadline, ten.Deadline)
	}
	old := signToken(t, "r", -time.Minute, 5) // past its time
	most := extend(`{"hold_for":"3h","token":"` + old + `"}`)
	if all := most.Deadline.Sub(most.Created); all != 20*time.Minute {
		t.Errorf("held for %v in all", all)
	}
	verifier, err := token.NewVerifier(token.Options{Secret: sitetest.APISecret, Audience: "order-backend"})
	if err != nil {
		t.Fatal(err)
	}
	was, _ := verifier.Verify(old, token.Expect{AnySubject: true})
	is, err := verifier.Verify(most.Token, token.Expect{Subject: "buyer-7"})
	if err != nil {
		t.Fatal(err)
	}
	if is.ExpiresAt != most.Exp.Unix() || is.ExpiresAt <= was.ExpiresAt {
		t.Errorf("the token ends at %v, the record says %v", is.ExpiresAt, most.Exp)
	}
	is.ExpiresAt = was.ExpiresAt
	if fmt.Sprintf("%+v", is) != fmt.Sprintf("%+v", was) {
		t.Errorf("other claims: %+v, were %+v", is, was)
	}
}

// A token is evidence only if an edge signed it for this reservation.
func TestAPIWeighsTheToken(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.Hold("r", "plain", 1, time.Hour)
	good := signToken(t, "r", time.Hour, 1)
	claims := token.Claims{Subject: "buyer-7", ID: "r", IssuedAt: 1, ExpiresAt: 2, Epoch: 1, Sale: "double11", Lines: []sale.Line{{SKU: "plain", Quantity: 1}}}
	elsewhere := claims
	elsewhere.Sale = "{x}"
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ token, query, says string }{
		"another reservation": {signToken(t, "other", time.Hour, 1), "", "about another reservation"},
		"another sale":        {good, "?sale=other", "about another sale"},
		"a sale that is none": {signClaims(t, elsewhere, sitetest.APISecret, "order-backend"), "", "no id of a sale"},
		"another key":         {signClaims(t, claims, strings.Repeat("x", 32), "order-backend"), "", "unknown key"},
		"another audience":    {signClaims(t, claims, sitetest.APISecret, "others"), "", "wrong audience"},
		"changed":             {good[:len(good)-6] + "AAAAAA", "", "wrong signature"},
		"no token":            {"abc", "", "malformed token"},
		"unsigned":            {"eyJhbGciOiJub25lIn0." + string(body), "", "malformed token"},
	} {
		for _, operation := range []string{"confirm", "extend"} {
			body := `{"token":` + quoted(c.token) + `}`
			if operation == "extend" {
				body = `{"hold_for":"5m","token":` + quoted(c.token) + `}`
			}
			a := s.API("POST", "/reservations/r/"+operation+c.query, body)
			if p := sitetest.ProblemOf(t, a); a.Status != 400 || p.Reason != "malformed" || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s, %s: %d %s", operation, name, a.Status, a.Body)
			}
		}
	}
	if r := sitetest.RecordOf(t, s.API("GET", "/reservations/r", "")); r.State != record.Held {
		t.Errorf("%+v", r)
	}
	if r := sitetest.RecordOf(t, s.API("POST", "/reservations/r/confirm", `{"token":"`+good+`"}`)); r.State != record.Confirmed {
		t.Errorf("%+v", r)
	}
}

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// A reservation that Redis has lost is restored from its token, once and if the units are
// available; one that never existed is not.
func TestAPIRecreatesFromTheToken(t *testing.T) {
	s, _, app := sitetest.OpenAPI(t)
	epoch := time.Now().Add(-time.Hour).UnixMilli() // the sale of this test began later
	confirm := func(id string, epoch int64) sitetest.Answer {
		return s.API("POST", "/reservations/"+id+"/confirm", `{"token":"`+signToken(t, id, -time.Minute, epoch)+`"}`)
	}
	for range 2 {
		if r := sitetest.RecordOf(t, confirm("lost", epoch)); r.State != record.Confirmed || r.Sale != "double11" || len(r.Lines) != 1 || r.Lines[0].Quantity != 1 {
			t.Errorf("%+v", r)
		}
	}
	now := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if got := now.Cell("plain", ""); got != "100 99 0 0 1" || !now.Balanced {
		t.Errorf("%s %+v", got, now)
	}
	if a := confirm("never", time.Now().Add(time.Hour).UnixMilli()); a.Status != 404 || sitetest.ProblemOf(t, a).Reason != "not_found" {
		t.Errorf("of this epoch: %d %s", a.Status, a.Body)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"away","delta":-99}`)
	if a := confirm("too late", epoch); a.Status != 400 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	a := confirm("too-late", epoch)
	if p := sitetest.ProblemOf(t, a); a.Status != 409 || p.Reason != "refund_needed" || p.State != "unknown" {
		t.Errorf("%d %s", a.Status, a.Body)
	}

	// Redis has lost the sale as well: that says nothing about the reservation
	_, other := sitetest.Redis(t)
	other["token"] = app["token"]
	s.Load(other)
	if a := confirm("lost", epoch); a.Status != 503 || sitetest.ProblemOf(t, a).Reason != "unavailable" {
		t.Errorf("without the sale: %d %s", a.Status, a.Body)
	}
	s.OpenSale()
	if r := sitetest.RecordOf(t, confirm("lost", epoch)); r.State != record.Confirmed {
		t.Errorf("%+v", r)
	}
}

// However many requests confirm and release at once, one of the two wins and every request
// for the other one gets a conflict.
func TestAPIConcurrently(t *testing.T) {
	s, p, _ := sitetest.OpenAPI(t)
	p.Hold("r", "plain", 3, time.Hour)
	var mu sync.Mutex
	answers := map[string]int{}
	var all sync.WaitGroup
	for i := range 30 {
		operation, body := "confirm", ""
		if i%2 == 0 {
			operation = "release"
		}
		all.Go(func() {
			a := s.API("POST", "/reservations/r/"+operation, body)
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(operation, " ", a.Status)]++
		})
	}
	all.Wait()
	r := sitetest.RecordOf(t, s.API("GET", "/reservations/r", ""))
	want := map[record.State]string{
		record.Confirmed: "map[confirm 200:15 release 409:15]",
		record.Released:  "map[confirm 409:15 release 200:15]",
	}[r.State]
	if got := fmt.Sprint(answers); got != want {
		t.Errorf("%s is %s", r.State, got)
	}

	p.Hold("back", "plain", 3, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "back", reservation.SourceShop, "x"))
	clear(answers)
	for i := range 30 {
		all.Go(func() {
			a := s.API("POST", "/reservations/back/return", fmt.Sprintf(`{"id":"r%d","lines":[{"sku":"plain","qty":1}]}`, i%5))
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(a.Status)]++
		})
	}
	all.Wait()
	if got := fmt.Sprint(answers); got != "map[200:18 409:12]" { // 3 of 5 ids, 6 times each
		t.Error(got)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); !b.Balanced {
		t.Errorf("%+v", b)
	}
}
