package cart

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
)

// A gate gives up its own turns, and not those of a check around it: an order that is put off would wait for its own
// request.
func TestOwnTurnsEnd(t *testing.T) {
	r := httptest.NewRequest("POST", "/api/order", nil)
	r = r.WithContext(context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{}))
	cookie, header, cart := session.Key{1}, session.Key{2}, session.Key{3}
	take := func(keys ...session.Key) *session.Exclusion {
		turn, _, err := session.Take(t.Context(), keys, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		hasTurnOf(r, keys)
		return turn
	}
	check := &Session{Turn: take(cookie)}
	gate := &Session{Turn: take(header).With(take(cart))}
	all := []session.Key{cookie, header, cart}
	for range 2 {
		if lacks := lacking(r, all); len(lacks) > 0 {
			t.Fatalf("%v has no turn", lacks)
		}
		gate.EndTurn(r)
		if lacks := lacking(r, all); !slices.Equal(lacks, []session.Key{header, cart}) {
			t.Errorf("%v has no turn", lacks)
		}
		gate.Turn = take(header, cart)
	}
	gate.EndTurn(r)
	check.EndTurn(r)
	if lacks := lacking(r, all); len(lacks) != 3 {
		t.Errorf("%v has no turn", lacks)
	}
}
