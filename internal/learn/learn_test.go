package learn_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/learn"
)

// learned learns from recordings.
func learned(t *testing.T, files ...[]entry) (*learn.Learned, error) {
	t.Helper()
	var all []*learn.Recording
	for i, entries := range files {
		rec, err := learn.Read([]string{"buy.har", "more.har", "again.har"}[i], strings.NewReader(har(entries...)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return learn.Learn(all, learn.Options{})
}

// with changes the order of a purchase.
func with(change func(order *entry)) []entry {
	all := purchase()
	change(&all[len(all)-1])
	return all
}

func TestRecordingsWithoutAPurchaseAreRefused(t *testing.T) {
	second := purchase()[1]
	second.answer = `{"order_id":"SO-77124"}`
	anonymous := purchase()
	anonymous[0].header, anonymous[1].header = nil, nil
	hash := `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("ab", 32) + `"}}}`
	for _, c := range []struct {
		name  string
		files [][]entry
		want  string
	}{
		{"nothing", [][]entry{{}}, "no request to a shop"},
		{"no purchase", [][]entry{purchase()[:1]}, "buy.har has no purchase: none of its 0 requests"},
		{"two purchases", [][]entry{append(purchase(), second)}, "buy.har has two purchases, entries 2 and 3"},
		{"another shop", [][]entry{purchase(), purchase()[:1]}, "more.har has no request like buy.har entry 2: POST /api/orders"},
		{"neither cookies nor Authorization", [][]entry{anonymous}, "Export HAR (with sensitive data)"},
		{"a hash only", [][]entry{{{method: "POST", url: "https://shop.example.com/graphql", header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, mime: asJSON, body: hash, status: 200, answer: "{}", answerMime: asJSON}}},
			"only the hash of its GraphQL document"},
		{"no item, no cart", [][]entry{with(func(o *entry) { o.body = `{"pay":"card"}` })}, "names no item, and no earlier answer in JSON shows a cart"},
	} {
		_, err := learned(t, c.files...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBodiesThatWereNotExported(t *testing.T) {
	text := strings.Replace(har(purchase()...), `"postData"`, `"noData"`, 1)
	rec, err := learn.Read("buy.har", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = learn.Learn([]*learn.Recording{rec}, learn.Options{})
	if err == nil || !strings.Contains(err.Error(), "was recorded without its body") || !strings.Contains(err.Error(), "Save All As HAR") {
		t.Error(err)
	}
}

// TestWhatIsLearned compares lines of the Caddyfile with what each recording shows.
func TestWhatIsLearned(t *testing.T) {
	token := "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://id.example.com","aud":"shop","customer_id":7}`)) + ".c2ln"
	form := func(body string) func(*entry) {
		return func(o *entry) { o.mime, o.body = "application/x-www-form-urlencoded", body }
	}
	cart := entry{method: "GET", url: "https://shop.example.com/store/carts/cart_01JABCD9?fields=id", header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, status: 200,
		answer: `{"cart":{"id":"cart_01JABCD9","items":[{"variant":{"sku":"SNK-1"},"quantity":2}]}}`, answerMime: asJSON}
	after := cart
	after.url, after.answer = "https://shop.example.com/store/orders/cart_01JABCD9", `{"order":{"state":"paid","items":[{"variant":{"sku":"SNK-1"},"quantity":2}]}}`
	order := purchase()[1]
	order.url, order.body, order.answer = "https://shop.example.com/store/carts/cart_01JABCD9/complete", "", `{"type":"order"}`
	for _, c := range []struct {
		name    string
		entries []entry
		want    []string
		not     []string
	}{
		{"JSON", purchase(), []string{"shop.example.com {", "path /api/orders /api/orders/", "line {json.sku} {json.quantity}", "buyer {cookie.sid}", "confirm 201", "reverse_proxy 127.0.0.1:9000"}, nil},
		{"a root that is an array", with(func(o *entry) { o.body = `[{"sku":"SNK-1","quantity":2}]` }), []string{"lines {json} sku quantity"}, nil},
		{"rows of a form", with(form("items[0][sku]=SNK-1&items[0][quantity]=2")), []string{"lines {form.items} sku quantity"}, nil},
		{"lists of a form", with(form("sku[]=SNK-1&quantity[]=2")), []string{"lines {form.sku[]} {form.quantity[]}"}, nil},
		{"keys of a form", with(form("quantity[SNK-1]=2")), []string{"lines {form.quantity} @key @value"}, nil},
		{"a query", with(func(o *entry) { o.url, o.body = o.url+"?sku=SNK-1&qty=2", "" }), []string{"line {query.sku} {query.qty}"}, nil},
		{"a claim, a key of the issuer", with(func(o *entry) { o.header = map[string]string{"Authorization": "Bearer " + token} }),
			[]string{"jwt https://id.example.com/.well-known/jwks.json {", "issuer https://id.example.com", "audience shop", "buyer {jwt.customer_id}"}, nil},
		{"an id in the path", with(func(o *entry) { o.url = "https://shop.example.com/api/customers/1288371/orders" }), []string{"path /api/customers/*/orders /api/customers/*/orders/"}, []string{"1288371"}},
		{"a cart in the path", []entry{cart, order}, []string{"lookup GET http://127.0.0.1:9000/store/carts/{ref}?fields=id", "ref {path.2}", "lines {lookup.cart.items} variant.sku quantity"}, []string{"outcome ask"}},
		{"a later look at the order", []entry{cart, order, after}, []string{"outcome ask GET http://127.0.0.1:9000/store/orders/{ref} {", "lines {ask.order.items} variant.sku quantity", "json order.state paid"}, nil},
		{"a page of thanks", with(func(o *entry) {
			o.status, o.answer, o.set = 302, "", map[string]string{"Location": "https://shop.example.com/thanks/77123?x=1"}
		}), []string{"status 302", "header Location */thanks/*"}, []string{"77123"}},
		{"a code", with(func(o *entry) { o.status, o.answer = 200, `{"success":true,"order_id":"SO-77123"}` }), []string{"json success true", "confirm @taken"}, nil},
	} {
		l, err := learned(t, c.entries)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		file := l.Caddyfile(learn.Addresses{})
		for _, want := range c.want {
			if !slices.ContainsFunc(strings.Split(file, "\n"), func(line string) bool { return strings.TrimSpace(line) == want }) {
				t.Errorf("%s: no line %q in\n%s", c.name, want, file)
			}
		}
		for _, not := range c.not {
			if strings.Contains(file, not) {
				t.Errorf("%s: %q in\n%s", c.name, not, file)
			}
		}
	}
}

// TestIDsOfLettersOnly buys with carts whose ids have no digit: what is written fits every cart, and the recording of
// another cart is one of the same purchase.
func TestIDsOfLettersOnly(t *testing.T) {
	with := func(id, step string) []entry {
		cart := entry{method: "GET", url: "https://shop.example.com/store/carts/" + id, header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, status: 200,
			answer: `{"cart":{"id":"` + id + `","items":[{"variant":{"sku":"SNK-1"},"quantity":2}]}}`, answerMime: asJSON}
		order := purchase()[1]
		order.url, order.body, order.answer = cart.url+"/"+step, "", `{"type":"order","step":{"id":"`+step+`"}}`
		return []entry{cart, order}
	}
	for _, ids := range [][3]string{
		{"cart_WCDDQIXNNLMBTTRMAACAQRABLL", "cart_01JABCD9", "complete-checkout-now"},
		{"cart_wcddqixnnlmbttrmaacaqrabll", "cart_qrabllwcddqixnnlmbttrmaaca", "checkout2"},
		{"wcDdqIXnnlMbttRmaacaQ", "HZbkKcxvPwqRtLmnBdfGh", "completeYourCheckout"},
		{"KQZTRMWA", "KQZT7MWB", "completePOS"},
	} {
		step := ids[2] // which an answer calls an id too
		l, err := learned(t, with(ids[0], step), with(ids[1], step))
		if err != nil {
			t.Error(err)
			continue
		}
		file := l.Caddyfile(learn.Addresses{})
		for _, want := range []string{"path /store/carts/*/" + step + " ", "lookup GET http://127.0.0.1:9000/store/carts/{ref}\n", "ref {path.2}\n"} {
			if !strings.Contains(file, want) {
				t.Errorf("%s: no %q in\n%s", ids[0], want, file)
			}
		}
		if strings.Contains(file+l.QuestionsFile(nil), ids[0]) {
			t.Errorf("%s is in what is written", ids[0])
		}
	}
}

// TestEachLineHasItsEvidence looks above each line of a gate for a recorded request or a question.
func TestEachLineHasItsEvidence(t *testing.T) {
	refused := with(func(o *entry) { o.status, o.answer = 409, `{"error":"sold_out"}` })
	l, err := learned(t, purchase(), refused)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(l.Caddyfile(learn.Addresses{}), "\n")
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line == "{" || line == "}" || line == "stockgate {" || line == "@order {" || strings.HasPrefix(line, "#") {
			continue
		}
		above := strings.TrimSpace(lines[i-1])
		if !strings.HasPrefix(above, "# ") || !strings.Contains(above, " entry ") && !strings.Contains(above, "question") {
			t.Errorf("nothing says why: %s", line)
		}
	}
	questions := l.QuestionsFile([]string{"a warning of Caddy"})
	for _, q := range l.Questions {
		if !strings.Contains(questions, q.Title) {
			t.Errorf("not asked: %s", q.Title)
		}
	}
	if !strings.Contains(questions, "a warning of Caddy") {
		t.Error("the warning is not repeated")
	}
}

func TestRefusalsOfTheShop(t *testing.T) {
	refused := with(func(o *entry) { o.status, o.answer = 409, `{"error":"sold_out","message":"Sorry, canary@mail.test"}` })
	l, err := learned(t, purchase(), refused)
	if err != nil {
		t.Fatal(err)
	}
	file := l.Caddyfile(learn.Addresses{})
	if want := "refuse sold_out limit_reached 409 `{\"error\":\"sold_out\",\"message\":\"{title}\"}`"; !strings.Contains(file, want) || !strings.Contains(file, "release 409 ") {
		t.Error(file)
	}
	doubtful := with(func(o *entry) { o.status, o.answer = 201, `{"message":"sold out"}` })
	if l, err = learned(t, purchase(), doubtful); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(l.Questions, func(q learn.Question) bool {
		return strings.Contains(q.Title, "tells a refused order from a taken one")
	}) {
		t.Errorf("a refused order looks like a taken one, and there is no question: %v", l.Questions)
	}
}

// TestLeak plants values of the recording into a text.
func TestLeak(t *testing.T) {
	l, err := learned(t, purchase())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"canary@mail.test", "c0ffee5e55104"} {
		if l.Leak("buyer "+secret) == nil {
			t.Errorf("%s would be written", secret)
		}
	}
	if err := l.Leak(l.Caddyfile(learn.Addresses{}) + l.QuestionsFile(nil)); err != nil {
		t.Error(err)
	}
}

func TestEditedFilesAreKnown(t *testing.T) {
	for _, comment := range []string{"#", "<!--"} {
		sealed := learn.Seal(comment, "a\nb\n")
		if !learn.Unedited(sealed) || learn.Unedited(sealed+"c\n") || learn.Unedited("a\nb\n") || !learn.SealedAs(sealed+"c\n", "a\nb\n") {
			t.Errorf("%q", sealed)
		}
	}
}

func TestChosenOrder(t *testing.T) {
	entries := append(purchase(), entry{method: "POST", url: "https://shop.example.com/api/foo", header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, mime: asJSON,
		body: `{"sku":"SNK-1","quantity":2}`, status: 200, answer: "{}", answerMime: asJSON})
	rec, err := learn.Read("buy.har", strings.NewReader(har(entries...)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := learn.Learn([]*learn.Recording{rec}, learn.Options{Order: 3})
	if err != nil || l.Order.Entry != 3 {
		t.Error(fmt.Sprint(l), err)
	}
	if _, err := learn.Learn([]*learn.Recording{rec}, learn.Options{Order: 1}); err == nil {
		t.Error("a GET was taken for an order")
	}
}

// TestPersonalValuesInOddPlaces puts the buyer's name where codes, states, paths and names of fields are read.
func TestPersonalValuesInOddPlaces(t *testing.T) {
	const who = "annmeyer"
	signedIn := entry{method: "POST", url: "https://shop.example.com/login", header: map[string]string{"Cookie": "sid=c0ffee5e55104"}, mime: asJSON, body: `{"username":"` + who + `"}`, status: 204}
	for _, c := range []struct {
		name   string
		change func(*entry)
	}{
		{"the path", func(o *entry) { o.url = "https://shop.example.com/users/" + who + "/orders" }},
		{"a code", func(o *entry) { o.answer = `{"status":"` + who + `","order_id":"SO-77123"}` }},
		{"a name of a field", func(o *entry) { o.body = `{"` + who + `":{"sku":"SNK-1","quantity":2}}` }},
		{"the page of thanks", func(o *entry) {
			o.status, o.answer, o.set = 302, "", map[string]string{"Location": "/thanks/" + who}
		}},
		{"the query", func(o *entry) { o.url += "?" + who + "=" + who }},
		{"a cookie's name", func(o *entry) { o.header = map[string]string{"Cookie": who + "=sid; sid=c0ffee5e55104"} }},
		{"the item", func(o *entry) { o.body = `{"sku":"` + who + `","quantity":2}` }},
	} {
		entries := append([]entry{signedIn}, with(c.change)...)
		refused := append([]entry{signedIn}, with(func(o *entry) {
			c.change(o)
			o.status, o.answer, o.set = 409, `{"error":"`+who+`","message":"No, `+who+`"}`, nil
		})...)
		l, err := learned(t, entries, refused)
		said := fmt.Sprint(err)
		if err == nil {
			said = l.Caddyfile(learn.Addresses{}) + l.QuestionsFile(nil) + l.SaleFile(learn.Window{})
		}
		if strings.Contains(said, who) {
			t.Errorf("%s: it is written\n%s", c.name, said)
		}
	}
}

// TestWhichCookieIsTheSession leaves out flags, and names that may differ from buyer to buyer.
func TestWhichCookieIsTheSession(t *testing.T) {
	const cookies = "items_in_cart=1; cart_lang=english-language; wp_session_3d2a7bc9e1f0a8=7c7cabcdef0123456789"
	odd := with(func(o *entry) { o.header = map[string]string{"Cookie": cookies, "Cart-Token": "a1b2c3d4e5f6a7b8"} })
	l, err := learned(t, odd)
	if err != nil {
		t.Fatal(err)
	}
	if file := l.Caddyfile(learn.Addresses{}); !strings.Contains(file, "buyer {header.Cart-Token}") || strings.Contains(file, "items_in_cart") || !strings.Contains(l.QuestionsFile(nil), "Which cookie is the session?") {
		t.Error(file)
	}
	refused := with(func(o *entry) {
		o.header = map[string]string{"Cookie": "wp_session_3d2a7bc9e1f0a8=ffffabcdef0123456789"}
		o.status, o.answer = 409, `{"error":"sold_out"}`
	})
	if l, err = learned(t, odd, refused); err != nil {
		t.Fatal(err)
	}
	if file := l.Caddyfile(learn.Addresses{}); !strings.Contains(file, "buyer {cookie.wp_session_3d2a7bc9e1f0a8}") {
		t.Error(file)
	}
}

// TestErrorsInDataDecideNothing orders with a document whose answer may be an error without `errors`.
func TestErrorsInDataDecideNothing(t *testing.T) {
	order := purchase()[1]
	order.url, order.status = "https://shop.example.com/shop-api", 200
	order.body = `{"query":"mutation { placeOrder(input: {sku: \"SNK-1\", quantity: 2}) { ... on Order { code } ... on ErrorResult { errorCode } } }"}`
	order.answer = `{"data":{"placeOrder":{"code":"SO-77123"}}}`
	l, err := learned(t, []entry{purchase()[0], order})
	if err != nil {
		t.Fatal(err)
	}
	file := l.Caddyfile(learn.Addresses{})
	if !strings.Contains(file, "outcome backend") || strings.Contains(file, "confirm") || !strings.Contains(file, "line {graphql.input.sku} {graphql.input.quantity}") {
		t.Error(file)
	}
}

// TestLongBodiesAreNotRead gives the order a body beyond each bound.
func TestLongBodiesAreNotRead(t *testing.T) {
	for _, note := range []string{strings.Repeat("x", learn.MaxBody), strings.Repeat("x", 2<<20), strings.Repeat("\x01", 200_000)} { // each of the last is six bytes
		long := with(func(o *entry) { o.body = `{"sku":"SNK-1","note":"` + note + `"}` })
		if _, err := learned(t, long); err == nil || !strings.Contains(err.Error(), "was recorded without its body") {
			t.Errorf("%d of %q: %v", len(note), note[:1], err)
		}
	}
}
