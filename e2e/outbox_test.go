package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// orders is an order system that is fed by the outbox: it takes each movement of a sale
// once, by its number, and complains of one that comes out of order.
type orders struct {
	t      *testing.T
	url    string
	secret string // whsec_ and base64

	mu      sync.Mutex
	lives   map[int64][]ledger.Entry // by epoch
	again   int
	came    int
	hanging chan struct{} // requests wait until it is closed; nil: none does
}

func newOrders(t *testing.T) *orders {
	t.Helper()
	o := &orders{t: t, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", lives: map[int64][]ledger.Entry{}}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// option is the global option that sends to it.
func (o *orders) option(more string) string {
	return fmt.Sprintf("outbox %s/movements {\nsecret %s\nbatch 20\n%s\n}", o.url, o.secret, more)
}

func (o *orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	o.mu.Lock()
	o.came++
	n, hanging := o.came, o.hanging
	o.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-r.Context().Done():
			return
		}
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(o.secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		o.t.Errorf("%s is not signed: %q", r.Header.Get("webhook-id"), r.Header.Get("webhook-signature"))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if n%5 == 2 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var m outbox.Message
	if err := json.Unmarshal(body, &m); err != nil {
		o.t.Errorf("%v in %s", err, body)
	}
	o.take(m.Data.Movements)
	if n%5 == 4 {
		panic(http.ErrAbortHandler) // the answer is lost
	}
}

func (o *orders) take(movements []ledger.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range movements {
		switch next := int64(len(o.lives[m.Epoch])) + 1; {
		case m.Seq < next:
			o.again++
		case m.Seq > next:
			o.t.Errorf("number %d comes after %d", m.Seq, next-1)
		default:
			o.lives[m.Epoch] = append(o.lives[m.Epoch], m)
		}
	}
}

// hang makes requests wait, and returns what lets them go on.
func (o *orders) hang() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hanging = make(chan struct{})
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		close(o.hanging)
		o.hanging = nil
	}
}

// requests is how many came.
func (o *orders) requests() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.came
}

// inStep waits until it has all of a sale's journal, and fails unless it has what is
// there.
func (o *orders) inStep(redis *redistest.Server, sale string) journal.Head {
	o.t.Helper()
	store, err := reservation.Open(shard.Options{Addresses: []string{redis.Addr()}, Timeout: 10 * time.Second})
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	var h journal.Head
	eventuallyf(o.t, func() bool {
		h, err = store.Journal().Head(o.t.Context(), sale)
		return err == nil && h.Unsent() == 0 && h.Last > 0
	}, func() string { return fmt.Sprintf("the journal is %+v, error %v", h, err) })
	all, err := store.Journal().Movements(o.t.Context(), sale, 0, int(h.Last)) // more may come meanwhile
	if err != nil {
		o.t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	have := o.lives[h.Epoch]
	if len(have) < len(all) { // one more may have been sold since
		o.t.Fatalf("it has %d movements of %d", len(have), len(all))
	}
	for i := range all {
		if have[i].Kind != all[i].Kind || have[i].ID != all[i].ID || have[i].Sale != sale || !have[i].Time.Equal(all[i].Time) {
			o.t.Errorf("number %d is %+v, want %+v", i+1, have[i], all[i])
		}
	}
	return h
}

// The edge that sends is killed in mid-sale: another one goes on, and at the end the
// order system has each movement once and in order. Redis is restarted and loses all;
// the next life of the sale is sent from its start.
func TestSendingEdgeIsKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	o := newOrders(t)
	sending, selling := newEdge(t, ""), newEdge(t, "")
	selling.storage = sending.storage
	_, addr := startShop(t, sending)
	same := site{redis: redisAt(server.Addr()), shop: addr, gate: roomy, app: o.option("")}
	sending.start(same)
	units := draw.Times(75, 150)
	items := fmt.Sprintf(`  - {sku: "7", stock: %d}`, units)
	sending.sell("flash", items)
	before := o.inStep(server, "flash") // it has the sale
	selling.start(same)
	selling.untilSelling("flash")
	done := make(chan []result, 1)
	go func() {
		done <- crowd(buyers(units+50, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "7", 1, "") }), noRoom, selling)
	}()
	eventually(t, "the crowd is heard of", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.lives[before.Epoch]) > int(before.Last)+20
	})
	sending.kill()
	<-done
	selling.must("POST", "sales/flash/pause", "", nil) // one movement at least is left for the other
	o.inStep(server, "flash")
	eventually(t, "the one that sells says that it sends", func() bool {
		return strings.Contains(selling.adminGet("/metrics"), `stockgate_outbox_sent_total{sale="flash"} `)
	})

	server.Kill()
	server.Restart()
	eventually(t, "redis is known to be back", func() bool {
		status, _ := selling.askAdmin("POST", "sales/flash/open", "", nil)
		return status == http.StatusOK
	})
	if h := o.inStep(server, "flash"); h.Epoch != before.Epoch {
		t.Errorf("the epoch is %d and was %d", h.Epoch, before.Epoch)
	}
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	file := "id: flash\n" + window + "items:\n" + items + "\n"
	if status, answer := selling.askAdmin("PUT", "sales/flash", file, nil); status != http.StatusConflict || !strings.Contains(answer, "rebuild flash") {
		t.Fatalf("a lost sale is loaded again: %d %s", status, answer)
	}
	if status, answer := selling.askAdmin("PUT", "sales/flash?new=1", file, nil); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	selling.must("POST", "sales/flash/open", "", nil)
	selling.untilSelling("flash")
	if h := o.inStep(server, "flash"); h.Epoch == before.Epoch {
		t.Error("the epoch is the same")
	}
}

// Reloads in the midst of a delivery lose nothing and leave nothing behind, and an
// order system that hangs holds up no sale.
func TestOutboxThroughReloads(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o := newOrders(t)
	e := newEdge(t, "")
	_, addr := startShop(t, e)
	with := func(option string) site { return site{redis: redisAt(server.Addr()), shop: addr, app: option} }
	outboxes := func(want int) {
		t.Helper()
		eventuallyf(t, func() bool {
			return e.goroutines("outbox.(*Outbox).Run(") == want && e.goroutines("outbox.(*Outbox).post(") <= want
		},
			func() string { return fmt.Sprintf("%d outboxes", e.goroutines("outbox.(*Outbox).Run(")) })
	}
	e.start(with(o.option("")))
	e.sell("flash", `  - {sku: "7", stock: 100}`)
	o.inStep(server, "flash")
	buy := func(buyer string) {
		t.Helper()
		e.buyers.CloseIdleConnections() // a reload closes those of before
		if r := e.buy(one(buyer, "7", 1, "")); r.status != 201 {
			t.Errorf("%s: %v", buyer, r)
		}
	}
	arrives := func(before int) {
		t.Helper()
		eventually(t, "a delivery is under way", func() bool { return o.requests() > before })
	}
	release, before := o.hang(), o.requests()
	buy("Ann")
	arrives(before)
	e.mustReload(with(o.option(""))) // the same: no sender is interrupted
	outboxes(1)
	buy("Bob")
	before = o.requests()
	e.mustReload(with(o.option("timeout 20s"))) // another one takes over, and sends the same again
	arrives(before)
	outboxes(1)
	if status, body := e.reload(with("outbox " + o.url + " {\nsecret s3cret\n}")); status == 200 || strings.Contains(body, "s3cret") {
		t.Errorf("a bad secret: %d %s", status, body)
	}
	outboxes(1)
	e.mustReload(with(""))
	outboxes(0)
	buy("Cid")
	release()
	before = o.requests()
	e.mustReload(with(o.option("")))
	arrives(before)
	o.inStep(server, "flash")
	outboxes(1)
	if e.log.has("MfKQ9r8GKYqr") {
		t.Error("the log has the secret")
	}
}
