package outbox_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_c3RvY2tnYXRlIHN0b2NrZ2F0ZSBzdG9ja2dhdGU="
)

// verify does what a receiver does: it knows one secret.
func verify(secret string, h http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return fmt.Errorf("the time is %q", h.Get("webhook-timestamp"))
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, have := range strings.Fields(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(have), []byte(want)) {
			return nil
		}
	}
	return fmt.Errorf("no signature of %q is ours", h.Get("webhook-signature"))
}

// request is one that came.
type request struct {
	id   string
	body string
	at   time.Time
	outbox.Message
}

// receiver takes movements as an order system does: what it has by its number it
// ignores, and what comes out of order is a fault.
type receiver struct {
	t      *testing.T
	url    string
	secret string
	some   bool // it is not sent all kinds: stretches without any are not sent
	// before is called with the number of each request, from 1, before it is processed:
	// an answer other than 0 is all that becomes of it. after is called when it was.
	before, after func(n int, w http.ResponseWriter, r *http.Request) int

	mu       sync.Mutex
	requests []request
	entries  map[string]ledger.Entry // by sale, epoch and number
	last     map[string]int64        // by sale and epoch: up to where it has all
	order    []ledger.Entry
	lost     []outbox.Numbers
	again    int // movements that it had
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, secret: oldSecret, entries: map[string]ledger.Entry{}, last: map[string]int64{}}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.url = server.URL + "/movements?key=s3cret"
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // who sends has gone
	}
	one := request{id: req.Header.Get("webhook-id"), body: string(body)}
	if err := verify(r.secret, req.Header, body); err != nil {
		r.t.Errorf("%s: %v", one.id, err)
	}
	if strings.Contains(one.id, ".") || req.Header.Get("Content-Type") != "application/json" || req.Method != http.MethodPost {
		r.t.Errorf("%s %s, %v", req.Method, one.id, req.Header)
	}
	if err := json.Unmarshal(body, &one.Message); err != nil || one.Type != outbox.MessageType {
		r.t.Errorf("%v in %s", err, body)
	}
	if d := one.Data; one.id != fmt.Sprintf("mov_%d_%d_%d_%s", d.Epoch, d.First, d.Last, strings.ReplaceAll(d.Sale, ".", "~")) {
		r.t.Errorf("%s has %d to %d of %s, epoch %d", one.id, d.First, d.Last, d.Sale, d.Epoch)
	}
	r.mu.Lock()
	one.at = time.Now()
	r.requests = append(r.requests, one)
	n := len(r.requests)
	r.mu.Unlock()
	if r.before != nil {
		if status := r.before(n, w, req); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	r.take(one)
	if r.after != nil {
		if status := r.after(n, w, req); status != 0 {
			w.WriteHeader(status)
		}
	}
}

// take processes a message.
func (r *receiver) take(one request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := one.Data
	life := fmt.Sprintf("%s/%d", d.Sale, d.Epoch)
	if _, known := r.last[life]; !known && d.Continues != nil {
		r.last[life] = min(r.last[fmt.Sprintf("%s/%d", d.Sale, d.Continues.Epoch)], d.Continues.Last)
	}
	if d.First > r.last[life]+1 && !r.some {
		r.t.Errorf("%s begins at %d, and what is here of %s ends at %d", one.id, d.First, life, r.last[life])
	}
	if d.Lost != nil && d.Last > r.last[life] {
		r.lost = append(r.lost, *d.Lost)
	}
	before := d.First - 1
	for _, m := range d.Movements {
		name := fmt.Sprintf("%s/%d", life, m.Seq)
		if m.Sale != d.Sale || m.Epoch != d.Epoch || m.Seq <= before || m.Seq > d.Last {
			r.t.Errorf("%s has %s after %d", one.id, name, before)
		}
		before = m.Seq
		if had, ok := r.entries[name]; ok {
			r.again++
			if fmt.Sprintf("%+v", had.Movement.ID) != fmt.Sprintf("%+v", m.Movement.ID) || had.Kind != m.Kind || !had.Time.Equal(m.Time) {
				r.t.Errorf("%s is %+v and was %+v", name, m, had)
			}
			continue
		}
		r.entries[name] = m
		r.order = append(r.order, m)
	}
	r.last[life] = max(r.last[life], d.Last)
}

// came is how many requests came.
func (r *receiver) came() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// seen are the requests that came.
func (r *receiver) seen() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request{}, r.requests...)
}

// has is up to which number it has an epoch of sale "s".
func (r *receiver) has(epoch int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[fmt.Sprintf("s/%d", epoch)]
}

// movements are those of an epoch of sale "s", in the order in which they came first.
func (r *receiver) movements(epoch int64) (all []journal.Movement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.order {
		if m.Epoch == epoch {
			all = append(all, m.Movement)
		}
	}
	return all
}

// counts are an outbox's log and metrics.
type counts struct {
	*ledgertest.Counts
	mu      sync.Mutex
	lags    map[string]int64
	oldest  time.Duration // of the lag that was reported last
	looked  int           // how often one was reported
	sent    int
	answers map[string]int
	failed  map[string]int
	trouble map[string]string // of sales
}

func newCounts() *counts {
	return &counts{Counts: ledgertest.NewCounts(), lags: map[string]int64{}, answers: map[string]int{}, failed: map[string]int{}, trouble: map[string]string{}}
}

func (c *counts) OutboxLag(sale string, movements int64, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lags[sale], c.oldest = movements, oldest
	c.looked++
}

func (c *counts) NoOutbox(sale string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lags, sale)
}

func (c *counts) OutboxSent(_ string, movements int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent += movements
}

func (c *counts) OutboxPosted(answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[answer]++
}

func (c *counts) OutboxFailed(where string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[where]++
}

func (c *counts) OutboxTrouble(sale string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trouble, sale)
	if err != nil {
		c.trouble[sale] = err.Error()
	}
}

// troubles is what keeps the outbox from getting on, in all sales.
func (c *counts) troubles() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.trouble)
}

func (c *counts) answered(class string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[class]
}

// lag is what was reported last of a sale.
func (c *counts) lag(sale string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lags[sale]
}

// looks waits until the lag was reported so often again.
func (c *counts) looks(t *testing.T, times int) (movements int64, oldest time.Duration) {
	t.Helper()
	n := -1
	ledgertest.Eventually(t, "the lag is looked at", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n < 0 {
			n = c.looked + times
		}
		movements, oldest = c.lags["s"], c.oldest
		return c.looked >= n
	})
	return movements, oldest
}

// options sends to a receiver, in small batches, and soon again.
func options(t *testing.T, r *receiver) outbox.Options {
	t.Helper()
	o := outbox.Options{URL: r.url, Batch: 7, Timeout: time.Minute, Again: outbox.Pauses{
		Soon: time.Millisecond, SoonMost: 20 * time.Millisecond, Late: time.Millisecond, LateMost: 20 * time.Millisecond,
	}}
	for _, text := range []string{newSecret, oldSecret} {
		s, err := outbox.ParseSecret(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Secrets = append(o.Secrets, s)
	}
	return o
}

// run runs an outbox, and returns what ends it and waits.
func run(t *testing.T, from outbox.Journals, old ledger.Ledger, o outbox.Options, c *counts) (end func()) {
	t.Helper()
	ctx, done := t.Context(), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		outbox.New(from, old, o, c.Log(), c).Run(ctx)
	}()
	var once sync.Once
	end = func() {
		once.Do(cancel)
		<-done
	}
	t.Cleanup(end)
	return end
}

// untilSent waits until the receiver has all of the journal and Redis knows, and fails
// unless it has each movement once, in order and as it is there.
func untilSent(t *testing.T, s *ledgertest.Seller, r *receiver) journal.Head {
	t.Helper()
	var h journal.Head
	ledgertest.Eventually(t, "the receiver has everything", func() bool {
		var err error
		if h, err = s.Store.Journal().Head(ledgertest.Soon(t), "s"); err != nil {
			t.Fatal(err)
		}
		return r.has(h.Epoch) == h.Last && h.Unsent() == 0
	})
	all, err := s.Store.Journal().Movements(ledgertest.Soon(t), "s", 0, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Same(t, r.movements(h.Epoch), all)
	return h
}

// openStore opens what edges have of a Redis.
func openStore(t *testing.T, server *redistest.Server) *reservation.Store {
	t.Helper()
	s, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
