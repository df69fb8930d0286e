package shop_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/token"
)

const (
	secret   = "0123456789abcdef0123456789abcdef"
	audience = "order-backend"
	issued   = 1_790_000_000
	expires  = issued + 25
)

// bench is a shop on a real server, with an edge's key and a clock of its own.
type bench struct {
	*shop.Shop
	server *httptest.Server
	client *http.Client
	clock  atomic.Int64 // Unix seconds
	later  atomic.Int64 // if not 0: what the clock becomes after the next look
	signer *token.Signer
}

func newBench(t *testing.T, o shop.Options) *bench {
	t.Helper()
	b := new(bench)
	b.clock.Store(issued + 1)
	verifier, err := token.NewVerifier(token.Options{
		Secret: secret, Audience: audience,
		Now: func() time.Time {
			now := b.clock.Load()
			if later := b.later.Swap(0); later != 0 {
				b.clock.Store(later)
			}
			return time.Unix(now, 0)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Verifier, o.AllowMisbehave = verifier, true
	b.open(t, o)
	return b
}

// newUnchanged is a shop that looks at no token.
func newUnchanged(t *testing.T) *bench {
	t.Helper()
	b := new(bench)
	b.open(t, shop.Options{AllowMisbehave: true})
	return b
}

func (b *bench) open(t *testing.T, o shop.Options) {
	t.Helper()
	key, err := token.ParseKey(token.KindHMAC, secret)
	if err != nil {
		t.Fatal(err)
	}
	if b.signer, err = token.NewSigner("", audience, key); err != nil {
		t.Fatal(err)
	}
	if o.Die == nil {
		o.Die = func() { b.server.Listener.Close() }
	}
	if b.Shop, err = shop.New(o); err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewUnstartedServer(b.Shop)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0) // panics are told, not found
	b.server.Start()
	b.client = &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		if err := b.Shop.Close(); err != nil {
			t.Error(err)
		}
		b.client.CloseIdleConnections()
		b.server.Close()
	})
}

func line(sku string, quantity int64, region string) sale.Line {
	return sale.Line{SKU: sku, Quantity: quantity, Region: region}
}

// sign makes the token of a reservation for buyer u1.
func (b *bench) sign(t testing.TB, id string, lines ...sale.Line) string {
	t.Helper()
	signed, err := b.signer.Sign(token.Claims{
		Subject: "u1", ID: id, IssuedAt: issued, ExpiresAt: expires, Sale: "double11", Lines: lines,
	})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

type reply struct {
	status      int
	location    string
	Code        int    `json:"code"`
	Msg         string `json:"msg"`
	OrderNo     string `json:"order_no"`
	Reservation string `json:"reservation"`
}

// request builds an order of one unit of sku "a"; headers are name, value, ….
func (b *bench) request(t testing.TB, signed string, headers ...string) *http.Request {
	t.Helper()
	return b.post(t, "/api/order?sku=a", "", "", signed, headers...)
}

func (b *bench) post(t testing.TB, path, kind, body, signed string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if signed != "" {
		r.Header.Set(token.Header, signed)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func (b *bench) send(r *http.Request) (reply, error) {
	response, err := b.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	got := reply{status: response.StatusCode, location: response.Header.Get("Location")}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return got, err
	}
	if response.Header.Get("Content-Type") == "application/json" {
		err = json.Unmarshal(body, &got)
	}
	return got, err
}

func (b *bench) mustSend(t testing.TB, r *http.Request) reply {
	t.Helper()
	got, err := b.send(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (b *bench) orders(t testing.TB) []shop.Order {
	t.Helper()
	orders, err := b.Orders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

func wantStatus(t testing.TB, got reply, status, code int) {
	t.Helper()
	if got.status != status || got.Code != code {
		t.Errorf("status %d code %d (%s), want %d and %d", got.status, got.Code, got.Msg, status, code)
	}
}

// ids returns the reservations of the orders, in order.
func ids(orders []shop.Order) string {
	var all []string
	for _, o := range orders {
		all = append(all, o.Reservation)
	}
	return fmt.Sprint(all)
}
