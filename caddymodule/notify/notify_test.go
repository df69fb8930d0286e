package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

const saleFile = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: plain, stock: 100}
`

// channel is a chat in which operators read.
type channel struct{ *sitetest.Backend }

func openChannel(t *testing.T) channel {
	return channel{sitetest.NewBackend(t, func(http.ResponseWriter, *http.Request) {})}
}

// text is all that came.
func (c channel) text() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var b strings.Builder
	for _, m := range c.Got {
		b.WriteString(m.Body + "\n")
	}
	return b.String()
}

// hears waits until the channel has a text.
func (c channel) hears(s *sitetest.Site, text string) {
	s.T.Helper()
	s.Eventually(text, func() (string, bool) {
		all := c.text()
		return all, strings.Contains(all, text)
	})
}

// option is notify with this channel.
func (c channel) option() string {
	return "notify " + c.URL + "/T0KEN {\nform slack\npage https://ops.example.com/\n}\n"
}

// notified starts a site that tells a channel, with these directives and a sale that is not open.
func notified(t *testing.T, server *redistest.Server, c channel, options, directives string) *sitetest.Site {
	t.Helper()
	s := sitetest.Open(t, nil)
	s.Redis, s.Options = server.Addr(), options+c.option()
	if err := s.LoadCaddyfile(directives); err != nil {
		t.Fatal(err)
	}
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", saleFile)
	return s
}

func order(path, user string) *http.Request {
	r := sitetest.NewOrder("X-User-Id", user)
	r.URL.Path = path
	return r
}

// The day of a sale: each thing that operators are told, by its real cause, once, through reloads.
func TestTheDay(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	var answer atomic.Int64
	answer.Store(201)
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) })
	server, c := redistest.Start(t), openChannel(t)
	directives := `@pay {
		method POST
		path /api/order
	}
	stockgate @pay pay {
		buyer {header.X-User-Id}
		line {json.sku}
	}
	@rush {
		method POST
		path /api/rush
	}
	stockgate @rush rush {
		buyer {header.X-User-Id}
		line {json.sku}
		challenge pow {
			above 1 1h
			bits 8 8
		}
	}
	reverse_proxy ` + shop.Addr()
	s := notified(t, server, c, "", directives)
	client, ctx := server.Client(), t.Context()
	key := func(name string) string { return "stockgate:{double11.0}:" + name }
	redis := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	reload := func() {
		t.Helper()
		if err := s.LoadCaddyfile(directives); err != nil {
			t.Fatal(err)
		}
	}
	p := sitetest.NewShopper(t, server)

	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	c.hears(s, "double11 is open: 100 units of 1 item on sale until 16:00 UTC on 11 November. It was opened by ")
	c.hears(s, "`caddy stockgate sale show double11`")
	c.hears(s, `\u003chttps://ops.example.com/?sale=double11|Open the page\u003e`)

	before := meter.ShopCounts()["double11"]
	answer.Store(500)
	for i := range 25 {
		s.Send(order("/api/order", fmt.Sprint("u", i)))
	}
	// all that were sent so far: a look may come in the middle
	fails := regexp.MustCompile(`The shop fails orders of double11: (\d+) of (\d+) in the last minute`)
	s.Eventually("the shop fails", func() (string, bool) {
		all := c.text()
		said := fails.FindStringSubmatch(all)
		return all, said != nil && said[1] == said[2]
	})
	doubts, err := client.ZRange(ctx, key("in_doubt"), 0, -1).Result()
	redis(err)
	_, err = client.TxPipelined(ctx, func(all goredis.Pipeliner) error { // no look sees a part of them
		for _, id := range doubts {
			all.ZIncrBy(ctx, key("in_doubt"), -700_000, id) // it became so 700 s ago
		}
		return nil
	})
	redis(err)
	c.hears(s, "Orders of double11 are in doubt: 25.")
	answer.Store(201)

	p.Hold("h1", "plain", 60, time.Hour)
	p.Must(p.Confirm(ctx, "double11", "h1", reservation.SourceShop, "api"))
	c.hears(s, "Half of double11 is sold: 60 of 100 units are sold and 25 in doubt, and 15 are left.")
	reload()
	p.Hold("h2", "plain", 15, time.Hour)
	p.Must(p.Confirm(ctx, "double11", "h2", reservation.SourceShop, "api"))
	c.hears(s, "double11 is sold out: 75 of 100 units are sold and 25 in doubt.")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"more","delta":500}`)
	c.hears(s, "double11 has units on sale again: 500 came back or were added.")

	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	c.hears(s, "double11 is paused by ")
	reload()
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	c.hears(s, "double11 is open again: 75 of 600 units are sold and 25 in doubt. It was opened by ")

	p.Order("q1", sitetest.Queue(1))
	p.Order("q2", sitetest.Queue(1))
	first, err := client.ZRange(ctx, key("line"), 0, 0).Result()
	redis(err)
	waits, err := client.HGet(ctx, key("orders"), first[0]).Result()
	redis(err)
	words := strings.Fields(waits) // see lua/queue.lua
	words[4] = strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10)
	redis(client.HSet(ctx, key("orders"), first[0], strings.Join(words, " ")).Err())
	for i := range 10 {
		redis(client.HSet(ctx, key("queue"), fmt.Sprint("s", i), "0 0").Err())
	}
	redis(client.ZIncrBy(ctx, key("unbacked"), 1, "r9").Err())
	for range 3 {
		s.Send(order("/api/rush", "u1"))
	}
	long := time.Now().Add(-10 * time.Minute).UnixMilli()
	redis(client.HSet(ctx, key("meta"), "silent", fmt.Sprint(long, " ", long, " web-2-AAAA")).Err()) // see lua/silent.lua
	s.Eventually("ledger and outbox are behind", func() (string, bool) {
		meter.JournalService{}.Journal("double11", journal.Head{Age: 2 * time.Minute}, true, nil) // a look at the journal ends it
		meter.JournalService{}.OutboxLag("double11", 5, 2*time.Minute)
		all := c.text()
		return all, strings.Contains(all, "The ledger is behind with double11") && strings.Contains(all, "The outbox is behind with double11")
	})
	sitetest.Do[any](s, "POST", "/stockgate/gates/pay/bypass", `{"for":"1h","reason":"<!here> the shop moves"}`)
	for _, text := range []string{
		"The line of double11 stands with 1 order. The first has waited for 1h", "The shop took orders of double11 without stock: 1.", "The challenge of the gate rush is on",
		"The edge web-2 is gone", "caddy stockgate edge forget web-2-AAAA",
		"pass without a reservation until", "the shop moves",
	} {
		c.hears(s, text)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/drain", "")
	redis(client.ZRem(ctx, key("unbacked"), "r9").Err())
	meter.JournalService{}.NoJournal("double11")
	meter.JournalService{}.NoOutbox("double11")
	sitetest.Do[any](s, "DELETE", "/stockgate/gates/pay/bypass", "")
	for _, text := range []string{
		"The line of double11 moves again.", "No order of double11 is without stock any more.", "The ledger has all of double11 again.", "The outbox has sent all of double11.",
		"The bypass of the gate pay at ",
	} {
		c.hears(s, text)
	}

	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/close", "")
	c.hears(s, "double11 is closed by ")
	all := c.text()
	for _, once := range []string{"double11 is open: ", "double11 is open again: ", "is sold out", "is paused by ", "Half of double11", "The shop fails", "is closed by", "are in doubt: 25."} {
		if n := strings.Count(all, once); n != 2 { // in the text and in the blocks
			t.Errorf("%q came %d times", once, n/2)
		}
	}
	for _, bad := range []string{`<!here>`, `\u003c!here`} {
		if strings.Contains(all, bad) {
			t.Errorf("%s came", bad)
		}
	}
	if log := s.Read("log"); strings.Contains(log, "T0KEN") {
		t.Error("the log has the URL")
	}
	s.UntilScraped(map[string]string{"stockgate_notices_waiting": "0", `stockgate_degraded{part="notify"}`: "0"})
	if after := meter.ShopCounts()["double11"]; after.Sent-before.Sent != 25 || after.Failed-before.Failed != 25 {
		t.Errorf("the shop's answers are %+v, and were %+v", after, before)
	}
}

// A fence is told, and its end.
func TestFenceIsTold(t *testing.T) {
	server, c := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always")), openChannel(t)
	s := sitetest.Open(t, nil)
	s.Load(map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m", "fence_wait": "10m", "at_risk": "7"},
		"notify": map[string]any{"url": c.URL, "form": "slack", "only": []string{"fence"}}})
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", saleFile)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	store := stocktest.OpenStore(t, stocktest.Options(server))
	other := fence.New(store, zap.NewNop(), new(stocktest.Counter))
	alive, kill := context.WithCancel(t.Context())
	other.Start(alive)
	if err := store.Shard().Acquire(stocktest.Soon(t), "double11"); err != nil {
		t.Fatal(err)
	}
	kill()
	other.Wait()
	server.Kill()
	server.Restart()
	c.hears(s, "double11 is not sold for a moment")
	s.Eventually("it is sold again", func() (string, bool) {
		r := s.Run("sale", "unfence", "double11")
		return r.Out + r.Errors, strings.HasPrefix(r.Out, "double11 is sold again")
	})
	c.hears(s, "The fence of double11 has ended")
	if strings.Contains(c.text(), "is open") {
		t.Error("a kind came that is not wanted")
	}
}

// An edge without Redis says so itself, once, and that it is over, and a bypass too.
func TestAnEdgeWithoutRedis(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	server, c := redistest.Start(t), openChannel(t)
	directives := "@pay {\nmethod POST\npath /api/order\n}\nstockgate @pay pay {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\nrespond 201\n"
	s := notified(t, server, c, "", directives)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	c.hears(s, "double11 is open: ")
	sitetest.Silence(t)
	server.Stop()
	c.hears(s, " does not sell, and its buyers hear 503: ")
	sitetest.Do[any](s, "POST", "/stockgate/gates/pay/bypass", `{"for":"1h"}`)
	c.hears(s, "pass without a reservation until")
	if err := s.LoadCaddyfile(directives); err != nil { // a reload does not tell it again
		t.Fatal(err)
	}
	server.Restart()
	c.hears(s, " sells again. It took ")
	sitetest.Do[any](s, "DELETE", "/stockgate/gates/pay/bypass", "")
	c.hears(s, "The bypass of the gate pay at ")
	all := c.text()
	for _, once := range []string{" does not sell", "sells again.", "pass without a reservation until", "The bypass of"} {
		if n := strings.Count(all, once); n != 2 {
			t.Errorf("%q came %d times", once, n/2)
		}
	}
}

// Another edge tells for all: this one is silent. When that edge dies, this one goes on, also with what the other
// edges have said, and repeats nothing.
func TestAnotherEdgeTells(t *testing.T) {
	server, c := redistest.Start(t), openChannel(t)
	store := stocktest.OpenStore(t, stocktest.Options(server))
	free := make(chan struct{})
	held, err := lease.Acquire(stocktest.Soon(t), store.Shard(), "notices", func() { close(free) })
	if err != nil {
		t.Fatal(err)
	}
	s := notified(t, server, c, "", "respond 404\n")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	s.Eventually("this edge reports", func() (string, bool) {
		edges, _, err := store.Shard().Conditions(t.Context())
		return fmt.Sprint(edges, err), len(edges) == 1
	})
	if out := s.OK("notify", "test"); !strings.HasPrefix(out, "the receiver (slack) has taken a test message: it answers 200 after ") {
		t.Error(out)
	}
	if text := c.text(); strings.Contains(text, "double11") || !strings.Contains(text, "This is a test of ") {
		t.Errorf("it tells: %s", text)
	}
	if err := store.Shard().NoteConditions(t.Context(), "web-7-X", `{"round":1,"shop":{"double11":[40,30]},"conditions":[{"about":"fence other","kind":"fence","sale":"other","state":"fenced","text":"other waits.","over":"other is sold again."}]}`); err != nil {
		t.Fatal(err)
	}
	held.GiveUp()
	<-free
	c.hears(s, "double11 is open: ")
	c.hears(s, "other waits.")
	c.hears(s, "30 of 40 in the last minute")
	c.hears(s, "other is sold again.") // that edge does not speak any more
	if n := strings.Count(c.text(), "is open: "); n != 2 {
		t.Errorf("it is told %d times", n/2)
	}
}

// The receiver is away while a sale goes on. A reload leads to another one, which gets everything; the doctor and the
// health say what is wrong meanwhile, and no text has the URL.
func TestAnotherReceiver(t *testing.T) {
	server, dead, c := redistest.Start(t), openChannel(t), openChannel(t)
	dead.Close()
	s := notified(t, server, dead, "", "respond 404\n")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	s.Eventually("it is tried", func() (string, bool) {
		series := s.Scrape()
		return fmt.Sprint(series), series[`stockgate_notify_answers_total{answer="none"}`] != "0" && series["stockgate_notices_waiting"] != "0"
	})
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	if r := s.Run("notify", "test"); r.Status != 1 || !strings.Contains(r.Errors, "the receiver does not answer") || strings.Contains(r.Errors, "T0KEN") {
		t.Errorf("%+v", r)
	}
	s.Eventually("the doctor says so", func() (string, bool) {
		text := s.Admin("GET", "/stockgate/doctor", "").Body
		return text, strings.Contains(text, `"error","check":"notify"`)
	})
	s.UntilScraped(map[string]string{`stockgate_degraded{part="notify"}`: "1"})
	if text := s.Admin("GET", "/stockgate/doctor", "").Body + s.Admin("GET", "/stockgate/health", "").Body + s.Read("log"); strings.Contains(text, "T0KEN") || !strings.Contains(text, "operators are not told what happens: the receiver does not answer") {
		t.Error(text)
	}
	s.Options = c.option()
	if err := s.LoadCaddyfile("respond 404\n"); err != nil {
		t.Fatal(err)
	}
	c.hears(s, "double11 is open: ")
	c.hears(s, "double11 is paused by ")
	s.Eventually("the doctor is content", func() (string, bool) {
		text := s.Admin("GET", "/stockgate/doctor", "").Body
		return text, strings.Contains(text, `"ok","check":"notify"`)
	})
	s.Options = ""
	if err := s.LoadCaddyfile("respond 404\n"); err != nil {
		t.Fatal(err)
	}
	if r := s.Run("notify", "test"); r.Status != 1 || !strings.Contains(r.Errors, "has no `notify`") {
		t.Errorf("%+v", r)
	}
}
