package attempt_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// values compiles alternatives.
func values(t testing.TB, exprs ...string) attempt.Values {
	t.Helper()
	vs, err := attempt.CompileAll(exprs...)
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func mustReader(t testing.TB, spec attempt.Spec) *attempt.Reader {
	t.Helper()
	rd, err := attempt.NewReader(spec)
	if err != nil {
		t.Fatal(err)
	}
	return rd
}

// line makes a reader of one line, with the buyer in X-User-Id.
func lineReader(t testing.TB, sku, quantity string) *attempt.Reader {
	t.Helper()
	spec := attempt.Spec{
		Buyer: values(t, "{header.X-User-Id}"),
		Line:  []attempt.LineSpec{{SKU: values(t, sku)}},
	}
	if quantity != "" {
		spec.Line[0].Quantity = values(t, quantity)
	}
	return mustReader(t, spec)
}

// request makes a request of u-1 with a body of the given type; an empty type
// sends no Content-Type.
func request(method, target, mediaType, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if mediaType != "" {
		r.Header.Set("Content-Type", mediaType)
	}
	r.Header.Set("X-User-Id", "u-1")
	return r
}

// whole reads a request in all its steps.
func whole(t testing.TB, rd *attempt.Reader, r *http.Request, env attempt.Env) (sale.Attempt, *sale.Refusal) {
	t.Helper()
	body, refusal := bodyOf(t, rd, r)
	if refusal != nil {
		return sale.Attempt{}, refusal
	}
	return rd.Read(r, body, env)
}

// bodyOf reads the body of a request that Check does not refuse.
func bodyOf(t testing.TB, rd *attempt.Reader, r *http.Request) ([]byte, *sale.Refusal) {
	t.Helper()
	if refusal := rd.Check(r); refusal != nil {
		return nil, refusal
	}
	body, refusal, err := rd.ReadBody(r)
	if err != nil {
		t.Fatal(err)
	}
	return body, refusal
}

// withCart reads a request in all its steps, and what the shop says about its cart.
func withCart(t testing.TB, rd *attempt.Reader, r *http.Request, document string) (a sale.Attempt, refusal *sale.Refusal, unread string) {
	t.Helper()
	body, refusal := bodyOf(t, rd, r)
	if refusal != nil {
		return a, refusal, ""
	}
	reading, refusal := rd.ReadRequest(r, body, attempt.Env{})
	if refusal != nil {
		return a, refusal, ""
	}
	return reading.ReadCart([]byte(document))
}

// describe says what a refusal is, for comparisons: "malformed json.sku: …".
func describe(refusal *sale.Refusal) string {
	if refusal == nil {
		return ""
	}
	return strings.TrimSpace(string(refusal.Reason) + " " + refusal.Detail)
}

// show writes lines as "a×2 b×1".
func show(lines []sale.Line) string {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = fmt.Sprintf("%s×%d", l.Cell(), l.Quantity)
	}
	return strings.Join(parts, " ")
}
