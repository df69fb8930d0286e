//go:build shops

package shoptest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// hostile is a request that a client makes to get an order past the gate.
type hostile struct {
	name         string
	method, path string
	header       []string // names and values
	body         string
	want         fate
}

type fate int

const (
	// noOrder: it places none, be it refused by the gate or by the shop.
	noOrder fate = iota
	// anOrder: it is one in other clothes, and reserved.
	anOrder
	// either, as long as no order is without its units.
	either
)

// books says how many orders the shop has, and how many units Redis has confirmed.
type books func() (orders int, confirmed int64)

// try sends a request as it is and compares the books.
func (h *hostile) try(ctx context.Context, t *testing.T, b *browser, read books) {
	t.Helper()
	orders, confirmed := read()
	r, err := http.NewRequestWithContext(ctx, h.method, b.base+h.path, bytes.NewBufferString(h.body))
	if err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
	for name, values := range b.header {
		r.Header[name] = values
	}
	for i := 0; i < len(h.header); i += 2 {
		r.Header.Set(h.header[i], h.header[i+1])
	}
	said := "no answer"
	if answer, err := b.client.Do(r); err == nil { // a connection that is closed is an answer too
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		answer.Body.Close()
		said = answer.Status + " " + answer.Header.Get("Stockgate-Refusal") + " " + string(text)
	}
	said = strings.Join(strings.Fields(said), " ")
	ordersAfter, confirmedAfter := read()
	placed := ordersAfter - orders
	switch {
	case int64(placed) != confirmedAfter-confirmed:
		t.Errorf("%s: the shop has %d orders more, Redis %d units: %s", h.name, placed, confirmedAfter-confirmed, said)
	case h.want == noOrder && placed != 0, h.want == anOrder && placed != 1:
		t.Errorf("%s: %d orders: %s", h.name, placed, said)
	default:
		t.Logf("%s: %d orders: %s", h.name, placed, said)
	}
}
