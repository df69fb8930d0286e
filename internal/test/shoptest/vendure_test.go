//go:build shops

package shoptest_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/ports"
)

const vendureDir = "../../../examples/vendure"

// vendure is a server of examples/vendure with a database of its own.
type vendure struct {
	t    testing.TB
	addr string // host:port
	url  string
	db   string
}

// startVendure starts the shop. Its stock is SKU=UNITS,…
func startVendure(t testing.TB, stock string) *vendure {
	t.Helper()
	install(t, vendureDir)
	v := &vendure{t: t, addr: "127.0.0.1:" + ports.For(t), db: pgtest.StartTCP(t, ports.For(t), "max_connections=100").DatabaseURL()}
	v.url = "http://" + v.addr
	_, port, _ := strings.Cut(v.addr, ":")
	p := start(t, "vendure", []string{"PORT=" + port, "DATABASE_URL=" + v.db, "STOCK=" + stock, "COUPON=FREE"}, "node", vendureDir+"/shop.mjs")
	p.until(t, "it is ready", func() bool { return strings.Contains(string(p.tail()), "\nready\n") })
	return v
}

// sold is how many orders the shop has placed with an item, and for how many units.
func (v *vendure) sold(sku string) (orders, units int) {
	v.t.Helper()
	scan(v.t, v.db, `SELECT count(DISTINCT o.id), coalesce(sum(l.quantity), 0) FROM "order" o
		JOIN order_line l ON l."orderId" = o.id JOIN product_variant p ON p.id = l."productVariantId"
		WHERE o."orderPlacedAt" IS NOT NULL AND o.state <> 'Cancelled' AND p.sku = $1`, []any{sku}, &orders, &units)
	return orders, units
}

// variant is the id by which carts name an item.
func (v *vendure) variant(sku string) (id string) {
	v.t.Helper()
	scan(v.t, v.db, `SELECT id::text FROM product_variant WHERE sku = $1`, []any{sku}, &id)
	return id
}

// orders are those that the shop has placed, with their units, for `reconcile --shop`.
func (v *vendure) orders() [][]string { return ordersOf(v.t, v.db, "vendure") }

// administrator is a session of one, by which the recipe's probe asks.
func (v *vendure) administrator() string {
	v.t.Helper()
	b := newBrowser(v.url)
	defer b.close()
	r, err := b.once(v.t.Context(), "POST", "/admin-api", graphQL(`mutation{login(username:"superadmin",password:"superadmin"){__typename}}`, nil))
	token := r.header.Get("Vendure-Auth-Token")
	if err != nil || token == "" {
		v.t.Fatalf("no session: %v %s", err, r.body)
	}
	return token
}

// scan reads one row of a database.
func scan(t testing.TB, db, query string, args []any, into ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if err := c.QueryRow(ctx, query, args...).Scan(into...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// The operations of a storefront. Each asks for what a page needs to go on.
const (
	orderState    = `...on Order{code state} ...on ErrorResult{errorCode message}`
	addItem       = `mutation($id:ID!,$n:Int!){addItemToOrder(productVariantId:$id,quantity:$n){` + orderState + `}}`
	setCustomer   = `mutation($mail:String!){setCustomerForOrder(input:{firstName:"A",lastName:"B",emailAddress:$mail}){` + orderState + `}}`
	setAddress    = `mutation{setOrderShippingAddress(input:{fullName:"A B",streetLine1:"Street 1",city:"Berlin",postalCode:"10115",countryCode:"DE"}){` + orderState + `}}`
	setShipping   = `mutation{setOrderShippingMethod(shippingMethodId:["1"]){` + orderState + `}}`
	arrange       = `mutation{transitionOrderToState(state:"ArrangingPayment"){` + orderState + `}}`
	addPayment    = `mutation{addPaymentToOrder(input:{method:"dummy",metadata:{}}){` + orderState + `}}`
	settleByState = `mutation{transitionOrderToState(state:"PaymentSettled"){` + orderState + `}}`
	applyCoupon   = `mutation{applyCouponCode(couponCode:"FREE"){` + orderState + `}}`
)

// graphQL is the body of a request with an operation.
func graphQL(document string, variables any) string {
	return `{"query":` + quoted(document) + `,"variables":` + quoted(variables) + `}`
}

// fillCart goes from nothing to the page on which buyers pay. It returns how the visit has ended,
// or nothing.
func fillCart(ctx context.Context, b *browser, variant string, quantity int, mail string) end {
	for _, step := range []struct {
		document  string
		variables map[string]any
	}{
		{addItem, map[string]any{"id": variant, "n": quantity}},
		{setCustomer, map[string]any{"mail": mail}},
		{setAddress, nil},
		{setShipping, nil},
		{arrange, nil},
	} {
		r, err := b.send(ctx, "POST", "/shop-api", graphQL(step.document, step.variables))
		if e := vendureEnd(r, err); e != "" {
			return e
		}
	}
	return ""
}

// pay asks for the order until it is told whether there is one.
func pay(ctx context.Context, b *browser) end {
	began := time.Now()
	r, err := b.send(ctx, "POST", "/shop-api", graphQL(addPayment, nil))
	b.paid = time.Since(began)
	if e := vendureEnd(r, err); e != "" {
		return e
	}
	if state := at(r.body, "data", "addPaymentToOrder", "state"); state != "PaymentSettled" {
		return end(fmt.Sprintf("told %s", r.body))
	}
	return ordered
}

// vendureEnd is how a visit has ended by an answer; empty: it goes on.
func vendureEnd(r reply, err error) end {
	text := string(r.body)
	switch {
	case err != nil:
		return end(err.Error())
	case r.refusal == "sold_out" && strings.Contains(text, `"code":"sold_out"`):
		return soldOut
	case strings.Contains(text, "INSUFFICIENT_STOCK"), strings.Contains(text, "insufficient stock"), strings.Contains(text, "due to insufficient"):
		return soldOut
	case r.status != 200 || at(r.body, "errors") != nil || strings.Contains(text, `"errorCode"`):
		return end(fmt.Sprintf("told %d %s", r.status, text))
	}
	return ""
}

// buyInVendure is a whole visit.
func buyInVendure(variant string) func(ctx context.Context, b *browser, n int) end {
	return func(ctx context.Context, b *browser, n int) end {
		if e := fillCart(ctx, b, variant, 1, fmt.Sprintf("buyer%d@example.com", n)); e != "" {
			return e
		}
		return pay(ctx, b)
	}
}

// ordersOf runs a shop's query for `reconcile --shop`, and returns the file: a header, and a row for each item
// of an order.
func ordersOf(t testing.TB, db, shop string) [][]string {
	t.Helper()
	query, err := os.ReadFile("../../../examples/" + shop + "/orders.sql")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, string(query), pgx.QueryExecModeSimpleProtocol) // values as psql prints them
	if err != nil {
		t.Fatal(err)
	}
	file := [][]string{nil}
	for _, column := range rows.FieldDescriptions() {
		file[0] = append(file[0], column.Name)
	}
	for rows.Next() {
		var row []string
		for _, value := range rows.RawValues() {
			row = append(row, string(value))
		}
		file = append(file, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return file
}

// without returns the rows of a file of orders that an earlier one does not have.
func without(file, earlier [][]string) [][]string {
	rest := file[:1:1]
	for _, row := range file[1:] {
		if !slices.ContainsFunc(earlier, func(old []string) bool { return old[0] == row[0] }) {
			rest = append(rest, row)
		}
	}
	return rest
}
