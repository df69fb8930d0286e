package sitetest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// SwappedCart makes a hold A of two units for order SO-1, and swaps it for B of one. It returns A.
func SwappedCart(t *testing.T, p Shopper) reservation.Hold {
	t.Helper()
	b, err := p.SaleStock(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	cart := reservation.ReserveRequest{
		ID: "A", Sale: "double11", Version: b.Version, Buyer: "b", Ref: "SO-1", Lines: []sale.Line{{SKU: "few", Quantity: 2}},
		HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeBackend,
	}
	first, refusal, err := p.Reserve(t.Context(), &cart)
	if refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	cart.ID, cart.Lines = "B", []sale.Line{{SKU: "few", Quantity: 1}}
	if _, refusal, err := p.Swap(t.Context(), &cart, "A", "", false); refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	return first
}

// APIKey and APIOldKey are its keys.
const APIKey = "0123456789abcdef0123456789abcdef"

const APIOldKey = "fedcba9876543210"

// APISecret signs the tokens of its gates.
const APISecret = "a-shared-secret-of-32-bytes-for-tokens"

// OpenAPI starts a site with the shop's API, a sale and a shopper.
func OpenAPI(t *testing.T) (*Site, Shopper, map[string]any) {
	t.Helper()
	server, app := Redis(t)
	app["token"] = map[string]any{"keys": []any{map[string]any{"kind": "hmac", "material": APISecret}}}
	s := Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{APIKey, APIOldKey}}}
	s.Load(app)
	s.OpenSale()
	return s, NewShopper(t, server), app
}

// API sends a request to the shop's API with its key.
func (s *Site) API(method, path, body string) Answer {
	s.T.Helper()
	return s.AskWith("http", method, path, body, map[string]string{"Authorization": "Bearer " + APIKey, "Content-Type": "application/json"})
}

// APIProblem is the API's answer to a request that it refuses.
type APIProblem struct {
	Type, Title   string
	Status        int
	Reason, State string
	Detail        string
}

// ProblemOf reads a refusal of the API, which must be complete.
func ProblemOf(t *testing.T, a Answer) APIProblem {
	t.Helper()
	var p APIProblem
	dec := json.NewDecoder(strings.NewReader(a.Body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%v in %d %s", err, a.Status, a.Body)
	}
	if p.Status != a.Status || p.Type != "urn:stockgate:api:"+p.Reason || p.Title == "" || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a poor problem: %d %v %s", a.Status, a.Header, a.Body)
	}
	return p
}

// RecordOf reads a reservation from an answer of the API.
func RecordOf(t *testing.T, a Answer) reservation.Record {
	t.Helper()
	var r reservation.Record
	if a.Status != http.StatusOK || a.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	return r
}
