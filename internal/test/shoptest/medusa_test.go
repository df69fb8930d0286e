//go:build shops

package shoptest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/ports"
)

const medusaDir = "../../../examples/medusa"

// medusa is a server of examples/medusa with a database of its own.
type medusa struct {
	t      testing.TB
	addr   string // host:port
	url    string
	db     string
	key    string // of storefronts
	secret string // of the gate
	region string

	shipping string // the only way of it
}

// startMedusa starts the shop. Its stock is SKU=UNITS,…
func startMedusa(t testing.TB, stock string) *medusa {
	t.Helper()
	install(t, medusaDir)
	m := &medusa{t: t, addr: "127.0.0.1:" + ports.For(t), db: pgtest.StartTCP(t, ports.For(t), "max_connections=200").DatabaseURL()}
	m.url = "http://" + m.addr
	_, port, _ := strings.Cut(m.addr, ":")
	keys := filepath.Join(t.TempDir(), "keys")
	p := start(t, "medusa", []string{"PORT=" + port, "DATABASE_URL=" + m.db, "STOCK=" + stock, "COUPON=FREE", "KEYS=" + keys}, "sh", medusaDir+"/shop.sh")
	p.until(t, "it is ready", func() bool {
		r, err := http.Get(m.url + "/health")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	text, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	m.key, _ = at(text, "publishable").(string)
	m.secret, _ = at(text, "secret").(string)
	scan(t, m.db, `SELECT (SELECT id FROM region), (SELECT id FROM shipping_option)`, nil, &m.region, &m.shipping)
	return m
}

// sold is how many orders the shop has placed with an item, and for how many units.
func (m *medusa) sold(sku string) (orders, units int) {
	m.t.Helper()
	scan(m.t, m.db, `SELECT count(DISTINCT o.id), coalesce(sum(i.quantity), 0) FROM "order" o
		JOIN order_item i ON i.order_id = o.id AND i.version = o.version JOIN order_line_item l ON l.id = i.item_id
		WHERE o.status <> 'canceled' AND o.deleted_at IS NULL AND l.variant_sku = $1`, []any{sku}, &orders, &units)
	return orders, units
}

// variant is the id by which carts name an item.
func (m *medusa) variant(sku string) (id string) {
	m.t.Helper()
	scan(m.t, m.db, `SELECT id FROM product_variant WHERE sku = $1`, []any{sku}, &id)
	return id
}

// orders are those that the shop has placed, with their units, for `reconcile --shop`.
func (m *medusa) orders() [][]string { return ordersOf(m.t, m.db, "medusa") }

// fillCart goes from nothing to the page on which buyers pay, and returns the cart. An end is how
// the visit has ended before.
func (m *medusa) fillCart(ctx context.Context, b *browser, variant string, quantity int, mail string) (cart string, e end) {
	b.header.Set("X-Publishable-Api-Key", m.key)
	var collection string
	for _, step := range []struct {
		method, path, body string
		id                 *string // what the answer names
		at                 []any
	}{
		{"POST", "/store/carts", `{"region_id":` + quoted(m.region) + `,"email":` + quoted(mail) + `,"items":[{"variant_id":` + quoted(variant) + `,"quantity":` + strconv.Itoa(quantity) +
			`}],"shipping_address":{"first_name":"A","last_name":"B","address_1":"Street 1","city":"Berlin","postal_code":"10115","country_code":"de"}}`,
			&cart, []any{"cart", "id"}},
		{"POST", "/store/carts/{cart}/shipping-methods", `{"option_id":` + quoted(m.shipping) + `}`, nil, nil},
		{"POST", "/store/payment-collections", `{"cart_id":"{cart}"}`, &collection, []any{"payment_collection", "id"}},
		{"POST", "/store/payment-collections/{collection}/payment-sessions", `{"provider_id":"pp_system_default"}`, nil, nil},
	} {
		fill := strings.NewReplacer("{cart}", cart, "{collection}", collection).Replace
		r, err := b.send(ctx, step.method, fill(step.path), fill(step.body))
		if e := medusaEnd(r, err); e != "" {
			return cart, e
		}
		if step.id != nil {
			*step.id, _ = at(r.body, step.at...).(string)
		}
	}
	return cart, ""
}

// complete asks for the order until it is told whether there is one.
func complete(ctx context.Context, b *browser, cart string) end {
	began := time.Now()
	r, err := b.send(ctx, "POST", "/store/carts/"+cart+"/complete", "")
	b.paid = time.Since(began)
	if e := medusaEnd(r, err); e != "" {
		return e
	}
	if at(r.body, "type") != "order" {
		return end(fmt.Sprintf("told %s", r.body))
	}
	return ordered
}

// medusaEnd is how a visit has ended by an answer; empty: it goes on.
func medusaEnd(r reply, err error) end {
	switch {
	case err != nil:
		return end(err.Error())
	case r.refusal == "sold_out" && r.status == http.StatusConflict:
		return soldOut
	case at(r.body, "code") == "insufficient_inventory", strings.Contains(string(r.body), "required inventory"):
		return soldOut
	case r.status != http.StatusOK:
		return end(fmt.Sprintf("told %d %s", r.status, r.body))
	}
	return ""
}

// buy is a whole visit.
func (m *medusa) buy(variant string) func(ctx context.Context, b *browser, n int) end {
	return func(ctx context.Context, b *browser, n int) end {
		cart, e := m.fillCart(ctx, b, variant, 1, fmt.Sprintf("buyer%d@example.com", n))
		if e != "" {
			return e
		}
		return complete(ctx, b, cart)
	}
}
