package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// selfTest sends valid orders to a shop that reads wrongly, each of which must be found.
func selfTest(g *gate) error {
	l := &lane{port: liar.site}
	defer l.close()
	for i := range routes {
		r := &routes[i]
		if r.other || r.lines || r.single {
			continue // the lie is about a single quantity, which the token must tell
		}
		q := plainOrder(r)
		got, ok, err := l.exchange(q, q.bytes(rand.New(rand.NewPCG(1, 1))))
		if err != nil || !ok || got.answer == nil {
			return fmt.Errorf("a valid order of the gate %s was not answered by the shop: %d %v %s", r.name, got.status, err, got.raw)
		}
		if _, wrong := g.judge(q, ok, &got); wrong == "" {
			return fmt.Errorf("a shop that reads 3 units as 4 was not found in the gate %s", r.name)
		}
	}
	return nil
}

// plainOrder is an order of 3 units that nothing is odd in.
func plainOrder(r *route) *request {
	q := &request{route: r, method: "POST", target: r.path}
	order := "sku=tea&quantity=3&user=self-test-" + r.name
	switch r.name {
	case "json":
		q.headers = [][2]string{{"Content-Type", "application/json"}}
		q.body = []byte(`{"sku":"tea","quantity":3,"user":"self-test"}`)
	case "form":
		q.headers = [][2]string{{"Content-Type", formTypes[0]}}
		q.body = []byte(order)
	case "header":
		q.headers = [][2]string{{"X-Sku", "tea"}, {"X-Quantity", "3"}, {"X-User-Id", "self-test-header"}}
	case "path":
		q.target, q.headers = "/path/tea/3", [][2]string{{"X-User-Id", "self-test-path"}}
	default:
		q.target += "?" + order
	}
	return q
}

// explain sends one request to every shop and prints everything.
func explain(g *gate, shops []*shop, o options) error {
	q, rng := generate(o.seed, uint64(o.only))
	raw := q.bytes(rng)
	fmt.Printf("gate %s\n%s\n%q\n", q.route.name, raw, raw)
	var found error
	for _, s := range shops {
		l := &lane{port: s.site}
		got, ok, err := l.exchange(q, raw)
		l.close()
		_, wrong := g.judge(q, ok, &got)
		fmt.Printf("%s: %d %s %v\n", s.name, got.status, readable(got.raw), err)
		if got.answer != nil {
			claims, err := g.claims(got.answer)
			fmt.Printf("  token: %+v %v\n", claims, err)
		}
		if wrong != "" {
			found = errors.Join(found, fmt.Errorf("%s: %s", s.name, wrong))
		}
	}
	return found
}
