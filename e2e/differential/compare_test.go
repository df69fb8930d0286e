package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/token"
)

func say3(sku, quantity, user string) reading {
	value := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return reading{How: "test", From: "body", SKU: value(sku), Quantity: value(quantity), User: value(user)}
}

// TestCompareFindsAnotherReading gives compare what a shop may answer.
func TestCompareFindsAnotherReading(t *testing.T) {
	claims := &token.Claims{Subject: "u", Lines: []sale.Line{{SKU: "7", Quantity: 3}}}
	for name, tc := range map[string]struct {
		route  string
		method string
		claims *token.Claims
		got    reading
		want   string // how the difference begins; empty: there is none
	}{
		"the same":              {"json", "POST", claims, say3("s:7", "s:3", "s:u"), ""},
		"numbers":               {"json", "POST", claims, say3("n:7", "n:3.0", "s:u"), ""},
		"nothing":               {"json", "POST", claims, say3("", "", ""), ""},
		"from another place":    {"header", "POST", claims, say3("s:8", "s:9", "s:v"), ""},
		"another SKU":           {"json", "POST", claims, say3("s:8", "s:3", "s:u"), "test: the SKU is s:8"},
		"another quantity":      {"json", "POST", claims, say3("s:7", "n:4", "s:u"), "test: the quantity is n:4"},
		"no quantity":           {"json", "POST", claims, say3("s:7", "", "s:u"), "test: the quantity is absent"},
		"an empty quantity":     {"json", "POST", claims, say3("s:7", "s:", "s:u"), "test: the quantity is s:"},
		"half a unit":           {"json", "POST", claims, say3("s:7", "n:3.5", "s:u"), "test: the quantity is n:3.5"},
		"an array":              {"json", "POST", claims, say3("x:array", "n:3", "s:u"), "test: the SKU is x:array"},
		"another buyer":         {"json", "POST", claims, say3("s:7", "n:3", "s:v"), "test: the buyer is s:v"},
		"a buyer without order": {"json", "POST", claims, say3("", "", "s:v"), "test: the buyer is s:v"},
		"another method":        {"json", "DELETE", claims, say3("s:7", "n:3", "s:u"), "it routed the method DELETE"},
		"no token":              {"json", "POST", nil, say3("s:7", "n:3", "s:u"), "test: it found an order, and no token"},
		"another item":          {"other", "POST", nil, reading{From: "body", SKU: &[]string{"s:8x"}[0], Casts: []string{"8", "NaN", "0"}}, ""},
		"a listed item":         {"other", "POST", nil, say3("s:TEA", "", ""), "test: the SKU is the listed tea"},
		"a cast":                {"other", "POST", nil, reading{How: "test", From: "body", SKU: &[]string{"s:7e0x"}[0], Casts: []string{"7.0"}}, "test: a cast of the SKU s:7e0x gives the listed 7"},
	} {
		r := routeByName(t, tc.route)
		a := &answer{Method: tc.method, Path: r.path, Readings: []reading{tc.got}}
		got, _ := compare(r, &request{method: "POST", target: r.path + "?a=b"}, a, tc.claims)
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestCompareSumsLines: a shop may have equal lines apart, and in another order.
func TestCompareSumsLines(t *testing.T) {
	r := routeByName(t, "lines")
	claims := &token.Claims{Lines: []sale.Line{{SKU: "a", Quantity: 3}, {SKU: "b", Quantity: 1}}}
	a, b, one, two := "s:a", "s:b", "n:1", "s:2"
	number, float, zero, empty := "n:7", "n:7.0e+00", "n:0", "s:"
	for want, lines := range map[string][][2]*string{
		"":                      {{&a, &one}, {&b, nil}, {&number, &zero}, {&a, &two}, {&b, &empty}},
		"body: the lines are":   {{&a, &one}, {&number, nil}, {&float, nil}},
		"body: a line is absen": {{&a, &two}, {nil, nil}},
	} {
		got, _ := compare(r, &request{method: "POST", target: r.path}, &answer{
			Method: "POST", Path: r.path, Readings: []reading{{How: "body", From: "body", Lines: lines}},
		}, claims)
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestARequestComesAgain: seed and number make the same bytes, and every route comes up.
func TestARequestComesAgain(t *testing.T) {
	seen := make(map[string]bool)
	for i := range uint64(2000) {
		q, rng := generate(5, i)
		again, rngAgain := generate(5, i)
		if !bytes.Equal(q.bytes(rng), again.bytes(rngAgain)) {
			t.Fatalf("request %d of one seed is another one", i)
		}
		seen[q.route.name] = true
	}
	if len(seen) != len(routes) {
		t.Errorf("of %d routes only %v came up", len(routes), seen)
	}
}

func routeByName(t *testing.T, name string) *route {
	t.Helper()
	for i := range routes {
		if routes[i].name == name {
			return &routes[i]
		}
	}
	t.Fatalf("no route %s", name)
	return nil
}
