//go:build shops

package shoptest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What clients can do to a GraphQL shop behind the recipe: every request is reserved or refused,
// and no order is without its units.
func (v *vendure) hostile(t *testing.T) {
	before := v.orders()
	_, soldBefore := v.sold("SNK-1")
	item := v.variant("SNK-1")
	g := startGates(t, 2, vendureDir+"/Caddyfile", v.addr, item, 1000, "VENDURE_KEY="+v.administrator())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	buyers := 0
	cart := func(t *testing.T, steps ...string) *browser {
		t.Helper()
		b := newBrowser(g.urls[buyers%len(g.urls)])
		t.Cleanup(b.close)
		buyers++
		if e := fillCart(ctx, b, item, 1, fmt.Sprintf("hostile%d@example.com", buyers)); e != "" {
			t.Fatal(e)
		}
		for _, document := range steps {
			if r, err := b.send(ctx, "POST", "/shop-api", graphQL(document, nil)); vendureEnd(r, err) != "" {
				t.Fatalf("%s: %s %v", document, r.body, err)
			}
		}
		return b
	}
	read := func() (int, int64) {
		orders, _ := v.sold("SNK-1")
		return orders, g.units("confirmed")
	}
	const toEditing = `mutation{transitionOrderToState(state:"AddingItems"){` + orderState + `}}`

	t.Run("no order", func(t *testing.T) {
		b := cart(t)
		for _, h := range vendureRefused(item) {
			h.try(ctx, t, b, read)
		}
		if e := pay(ctx, b); e != ordered { // so that each of them could have placed it
			t.Error(e)
		}
	})
	t.Run("an order in other clothes", func(t *testing.T) {
		for _, h := range vendureDisguised() {
			h.want = anOrder
			h.try(ctx, t, cart(t), read)
		}
		hash := sha256.Sum256([]byte(addPayment))
		byHash := `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hex.EncodeToString(hash[:]) + `"}}}`
		b := cart(t)
		for _, h := range []hostile{
			{name: "a hash that the edge does not know", body: byHash},
			{name: "a hash with its document", body: strings.Replace(byHash, "{", `{"query":`+quoted(addPayment)+`,`, 1), want: anOrder},
			{name: "the same hash again", body: byHash},
		} {
			h.method, h.path, h.header = "POST", "/shop-api", asJSON
			h.try(ctx, t, b, read)
		}
	})
	t.Run("without a payment", func(t *testing.T) {
		for _, h := range []hostile{
			{name: "by its state", body: graphQL(settleByState, nil), want: anOrder},
			{name: "the state in JSON", body: graphQL(`mutation($s:String!){transitionOrderToState(state:$s){`+orderState+`}}`, map[string]any{"s": "PaymentSettled"}), want: anOrder},
			{name: "the default state", body: graphQL(`mutation($s:String="PaymentSettled"){transitionOrderToState(state:$s){`+orderState+`}}`, nil), want: anOrder},
			{name: "as authorized only", body: graphQL(strings.Replace(settleByState, "Settled", "Authorized", 1), nil)},
		} {
			fillIn(&h, "/shop-api")
			h.try(ctx, t, cart(t, toEditing, applyCoupon, arrange), read)
		}
	})
	t.Run("the cart changes while it is paid", func(t *testing.T) {
		before := g.asks()
		race(t, carts(t), 4, func(i int) error {
			b := newBrowser(g.urls[i%2])
			defer b.close()
			if e := fillCart(ctx, b, item, 1, fmt.Sprintf("race%d@example.com", i)); e != "" {
				return fmt.Errorf("filling: %s", e)
			}
			return together(
				func() error { _, err := b.send(ctx, "POST", "/shop-api", graphQL(addPayment, nil)); return err },
				func() error {
					for _, document := range []string{toEditing, strings.NewReplacer("$id:ID!,$n:Int!", "$id:ID!", "$n", "1").Replace(addItem), arrange, addPayment} {
						if _, err := b.send(ctx, "POST", "/shop-api", graphQL(document, map[string]any{"id": item})); err != nil {
							return err
						}
					}
					return nil
				})
		})
		if after := g.asks(); after != before {
			t.Errorf("an order differed from what was reserved: %q, before %q", after, before)
		}
	})
	t.Run("the books", func(t *testing.T) {
		g.settled()
		if _, units := v.sold("SNK-1"); int64(units-soldBefore) != g.units("confirmed") {
			t.Errorf("the shop has sold %d units, Redis %d", units-soldBefore, g.units("confirmed"))
		}
		g.reconcile(without(v.orders(), before))
	})
	t.Run("in doubt", func(t *testing.T) {
		shop := between(t, v.addr, func(_ *http.Request, body []byte) bool { return bytes.Contains(body, []byte("orderByCode(code: $c)")) })
		g := startGates(t, 1, vendureDir+"/Caddyfile", shop, item, 1, "VENDURE_KEY="+v.administrator())
		b := newBrowser(g.urls[0])
		defer b.close()
		if e := fillCart(ctx, b, item, 1, "doubt@example.com"); e != "" {
			t.Fatal(e)
		}
		if e := pay(ctx, b); e != ordered {
			t.Fatal(e)
		}
		g.probed()
	})
}

var asJSON = []string{"Content-Type", "application/json"}

// vendureRefused are requests that place no order.
func vendureRefused(item string) []hostile {
	plain := graphQL(addPayment, nil)
	form := url.Values{"query": {addPayment}}.Encode()
	in := "?query=" + url.QueryEscape(addPayment)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(plain))
	_ = zip.Close()
	once := strings.TrimSuffix(strings.TrimPrefix(addPayment, "mutation{"), "}")
	all := []hostile{
		{name: "everything in one document", body: graphQL(`mutation{a:addItemToOrder(productVariantId:"`+item+`",quantity:1){`+orderState+`} b:transitionOrderToState(state:"ArrangingPayment"){`+orderState+`} `+once+`}`, nil)},
		{name: "twice in one document", body: graphQL("mutation{a:"+once+" b:"+once+"}", nil)},
		{name: "a list", body: "[" + plain + "]"},
		{name: "a list with a harmless one", body: `[{"query":"{__typename}"},` + plain + "]"},
		{name: "two documents", body: `{"query":"{__typename}","query":` + quoted(addPayment) + `}`},
		{name: "a name in another case", body: `{"query":"{__typename}","Query":` + quoted(addPayment) + `}`},
		{name: "a form", header: []string{"Content-Type", "application/x-www-form-urlencoded"}, body: form},
		{name: "a form that says JSON", body: form},
		{name: "JSON that says form", header: []string{"Content-Type", "application/x-www-form-urlencoded"}, body: plain},
		{name: "an upload", header: []string{"Content-Type", "multipart/form-data; boundary=x"}, body: "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + plain + "\r\n--x\r\nContent-Disposition: form-data; name=\"map\"\r\n\r\n{}\r\n--x--\r\n"},
		{name: "text", header: []string{"Content-Type", "text/plain"}, body: plain},
		{name: "a document alone", header: []string{"Content-Type", "application/graphql"}, body: addPayment},
		{name: "no type", header: []string{"Content-Type", ""}, body: plain},
		{name: "UTF-16", header: []string{"Content-Type", "application/json; charset=utf-16le"}, body: plain},
		{name: "zipped", header: []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, body: zipped.String()},
		{name: "in the URL of a GET", method: "GET", path: "/shop-api" + in},
		{name: "in the URL of a POST", path: "/shop-api" + in, body: `{}`},
		{name: "in the URL, beside a harmless body", path: "/shop-api" + in, body: `{"query":"{__typename}"}`},
		{name: "by another method", method: "PUT", body: plain},
		{name: "by a method's other name", method: "GET", header: []string{"Content-Type", "application/json", "X-HTTP-Method-Override", "POST"}, body: plain},
		{name: "a directive", body: graphQL("mutation{"+strings.Replace(once, "{...on", "@include(if:true){...on", 1)+"}", nil)},
		{name: "two operations, none named", body: graphQL("mutation a{"+once+"} mutation b{__typename}", nil)},
		{name: "an upgrade", header: []string{"Content-Type", "application/json", "Connection", "Upgrade", "Upgrade", "websocket"}, body: plain},
		{name: "a false hash", body: `{"query":` + quoted(addPayment) + `,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}}`},
		{name: "the administrators' API", path: "/admin-api", body: plain},
		{name: "an encoded path to it", path: "/shop-api/..%2fadmin-api", body: plain},
		{name: "shipped", body: graphQL(strings.Replace(settleByState, "PaymentSettled", "Shipped", 1), nil)},
		{name: "delivered", body: graphQL(strings.Replace(settleByState, "PaymentSettled", "Delivered", 1), nil)},
		{name: "settled, unpaid", body: graphQL(settleByState, nil)},
		{name: "around the path", path: "/assets/../shop-api", body: plain},
		{name: "around the path, encoded", path: "/assets/%2e%2e/shop-api", body: plain},
		{name: "an encoded slash", path: "/assets/..%2fshop-api", body: plain},
		{name: "a backslash", path: `/assets/..\shop-api`, body: plain},
	}
	for i := range all {
		fillIn(&all[i], "/shop-api")
	}
	return all
}

// vendureDisguised are requests that the shop takes for an order like any other.
func vendureDisguised() []hostile {
	plain := graphQL(addPayment, nil)
	once := strings.TrimSuffix(strings.TrimPrefix(addPayment, "mutation{"), "}")
	all := []hostile{
		{name: "escaped names", body: strings.NewReplacer("addPayment", `\u0061dd\u0050ayment`, `"query"`, `"\u0071uery"`).Replace(plain)},
		{name: "an alias", body: graphQL("mutation{activeOrder:"+once+"}", nil)},
		{name: "a fragment", body: graphQL("mutation{...F} fragment F on Mutation{...G} fragment G on Mutation{"+once+"}", nil)},
		{name: "the second of two operations", body: `{"operationName":"b","query":` + quoted("query a{__typename} mutation b{"+once+"}") + `}`},
		{name: "commas and comments", body: graphQL(",,#addPayment\nmutation,#\n{,"+once+",}", nil)},
		{name: "behind the path", path: "/shop-api/x/y", body: plain},
		{name: "a slash behind the path", path: "/shop-api/", body: plain},
		{name: "the path in capitals", path: "/SHOP-API", body: plain},
		{name: "an answer that looks like a refusal", body: graphQL("mutation{orderByCode:"+strings.Replace(once, "code state", "code state:code", 1)+"}", nil)},
	}
	for i := range all {
		fillIn(&all[i], "/shop-api")
	}
	return all
}

func fillIn(h *hostile, path string) {
	if h.method == "" {
		h.method = "POST"
	}
	if h.path == "" {
		h.path = path
	}
	if h.header == nil {
		h.header = asJSON
	}
}
