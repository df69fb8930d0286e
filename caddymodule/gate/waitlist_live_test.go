package gate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// openWaiting is a site where all units of few are held and ben waits for one. release gives them back.
func openWaiting(t *testing.T) (s *sitetest.Site, ben waiting, held string) {
	t.Helper()
	shop := sitetest.NewBackend(t, sitetest.Created)
	s = sitetest.OpenCaddyfile(t, waitingSite(shop.Addr(), ""))
	fileSays(s, "waitlist: {offer: 10m}")
	a := orders(s, "ann", `{"sku":"few","quantity":3}`)
	a.Is(t, http.StatusCreated, "")
	ben, _ = enters(s, "ben", `{"sku":"few"}`)
	ben.hears("waiting")
	return s, ben, a.Header.Get("Stockgate-Reservation")
}

func settles(s *sitetest.Site, id, how string) {
	s.T.Helper()
	sitetest.Do[any](s, "POST", "/stockgate/reservations/"+id+"/"+how, "")
}

// longPoll asks for news, and returns when the edge has the request open.
func (p waiting) longPoll(ctx context.Context, headers ...string) <-chan sitetest.Answer {
	p.T.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1"+p.place, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	r.Header.Set("Prefer", "wait=30")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	before, answer := sitetest.Watching(), make(chan sitetest.Answer, 1)
	client := p.Client()
	go func() {
		defer close(answer)
		defer client.CloseIdleConnections()
		resp, err := client.Do(r)
		if err != nil {
			return // its context has ended
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- sitetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
	}()
	stocktest.Eventually(p.T, "a request that is open, or answered", func() bool { return sitetest.Watching() > before || len(answer) > 0 })
	return answer
}

// soon waits for the answer.
func soon(t *testing.T, answer <-chan sitetest.Answer) (a sitetest.Answer, told stands) {
	t.Helper()
	select {
	case a = <-answer:
	case <-stocktest.Soon(t).Done():
		t.Fatal("there is no answer")
	}
	if a.Status == http.StatusOK {
		decode(t, a.Body, &told)
	}
	return a, told
}

// A client that prefers to wait is answered when there is news, at once if it does not know the last, and as soon as
// the configuration changes.
func TestWaitlistLongPoll(t *testing.T) {
	s, ben, held := openWaiting(t)
	first, _ := ben.asks("GET")
	answer := ben.longPoll(t.Context(), "If-None-Match", first.Header.Get("Etag"))
	settles(s, held, "release?force=true")
	a, told := soon(t, answer)
	if told.State != "offered" || a.Header.Get("Preference-Applied") != "wait=30" || a.Header.Get("Retry-After") != "" {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if _, told := soon(t, ben.longPoll(t.Context(), "If-None-Match", first.Header.Get("Etag"))); told.State != "offered" {
		t.Errorf("a client that missed the offer is told %+v", told)
	}
	answer = ben.longPoll(t.Context())
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	if _, told := soon(t, answer); told.State != "offered" || told.Until != "" {
		t.Errorf("in a pause: %+v", told)
	}
	answer = ben.longPoll(t.Context())
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	if _, told := soon(t, answer); told.State != "offered" || told.Until == "" {
		t.Errorf("after a pause: %+v", told)
	}
	answer = ben.longPoll(t.Context())
	ben.asks("DELETE")
	if _, told := soon(t, answer); told.State != "ended" || told.Why != "left" {
		t.Errorf("after leaving: %+v", told)
	}
	if n := sitetest.Watching(); n != 0 {
		t.Errorf("%d clients still wait", n)
	}
}

// A plain question that names what it knows is answered as HTTP says.
func TestWaitlistNotModified(t *testing.T) {
	s, ben, _ := openWaiting(t)
	a, _ := ben.asks("GET")
	r, _ := http.NewRequest("GET", "http://127.0.0.1"+ben.place, nil)
	r.Header.Set("If-None-Match", `"x", `+a.Header.Get("Etag"))
	if a := s.Send(r); a.Status != http.StatusNotModified || a.Body != "" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %q", a.Status, a.Header, a.Body)
	}
	r.Method = "HEAD"
	r.Header.Del("If-None-Match")
	h := s.Send(r)
	for _, name := range []string{"Etag", "Content-Type", "Content-Length", "Cache-Control"} {
		if h.Header.Get(name) != a.Header.Get(name) || h.Header.Get(name) == "" {
			t.Errorf("HEAD: %s is %q, with GET %q", name, h.Header.Get(name), a.Header.Get(name))
		}
	}
	if h.Body != "" || h.Header.Get("Retry-After") == "" {
		t.Errorf("HEAD: %v %q", h.Header, h.Body)
	}
}

// streamed is a stream of events.
type streamed struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

// streams opens a stream.
func (p waiting) streams(c *http.Client, ctx context.Context, base string, headers ...string) *streamed {
	p.T.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", base+p.place, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() { resp.Body.Close() })
	return &streamed{p.T, resp, bufio.NewScanner(resp.Body)}
}

// next returns the next block of lines; false: the stream has ended.
func (s *streamed) next() (block string, ok bool) {
	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return block, true
		}
		block += s.lines.Text() + "\n"
	}
	return block, false
}

// event returns the next event and its id; an empty id: the stream has ended.
func (s *streamed) event() (id string, told stands) {
	s.t.Helper()
	for {
		block, ok := s.next()
		if !ok {
			return "", told
		}
		data, isEvent := "", false
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "id":
				id = value
			case "data":
				data, isEvent = value, true
			}
		}
		if isEvent {
			if err := json.Unmarshal([]byte(data), &told); err != nil {
				s.t.Fatalf("%q: %v", block, err)
			}
			return id, told
		}
	}
}

// A stream tells each change of a place, and ends with the entry: the client does not connect again then.
func TestWaitlistStream(t *testing.T) {
	s, ben, held := openWaiting(t)
	sitetest.SetTime(t, timing.Place, time.Millisecond)
	cid, _ := enters(s, "cid", `{"sku":"few","quantity":3}`)
	cid.hears("waiting")
	bens, cids := ben.streams(s.Client(), t.Context(), "http://127.0.0.1"), cid.streams(s.Client(), t.Context(), "http://127.0.0.1")
	if h := bens.resp.Header; bens.resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", bens.resp.StatusCode, h)
	}
	if block, _ := bens.next(); !strings.HasPrefix(block, "retry: ") {
		t.Errorf("it begins with %q", block)
	}
	if id, told := bens.event(); told.State != "waiting" || told.Place != 1 || id != "w1" {
		t.Errorf("%s %+v", id, told)
	}
	if _, told := cids.event(); told.Place != 2 {
		t.Errorf("%+v", told)
	}
	if block, _ := bens.next(); block != ":\n" {
		t.Errorf("without news it says %q", block)
	}
	settles(s, held, "release?force=true")
	if _, told := bens.event(); told.State != "offered" || told.Until == "" {
		t.Errorf("%+v", told)
	}
	told := stands{}
	for told.State != "offered" { // the place may change first
		if _, told = cids.event(); told.State == "" {
			t.Fatal("the stream has ended")
		}
	}
	if told.Quantity != 2 {
		t.Errorf("%+v", told)
	}
	orders(s, "ben", `{"sku":"few"}`).Is(t, http.StatusCreated, "")
	id, told := bens.event()
	if told.State != "ended" || told.Why != "accepted" {
		t.Errorf("%+v", told)
	}
	if id, told := bens.event(); id != "" {
		t.Errorf("after the end: %s %+v", id, told)
	}
	if again := ben.streams(s.Client(), t.Context(), "http://127.0.0.1", "Last-Event-ID", id); again.resp.StatusCode != http.StatusNoContent {
		t.Errorf("a client that connects again: %d", again.resp.StatusCode)
	}
}

// All who wait are told when the last unit is sold, and when there is one again.
func TestWaitlistStreamTellsTheTruth(t *testing.T) {
	s, ben, held := openWaiting(t)
	stream := ben.streams(s.Client(), t.Context(), "http://127.0.0.1")
	if _, told := stream.event(); told.State != "waiting" || told.SoldOut {
		t.Errorf("%+v", told)
	}
	settles(s, held, "confirm")
	if id, told := stream.event(); told.State != "waiting" || !told.SoldOut || id != "s1" {
		t.Errorf("when all are sold: %s %+v", id, told)
	}
	if _, told := ben.asks("GET"); !told.SoldOut {
		t.Errorf("a poll says %+v", told)
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/few/stock", `{"id":"more","delta":1}`)
	for {
		id, told := stream.event()
		if told.State == "offered" {
			break
		}
		if id == "" || told.SoldOut {
			t.Fatalf("when there is one more: %s %+v", id, told)
		}
	}
}

// All who wait are told when no offers are made, because the sale is paused or an operator has paused the offers.
func TestWaitlistStreamTellsAPause(t *testing.T) {
	s, ben, _ := openWaiting(t)
	stream := ben.streams(s.Client(), t.Context(), "http://127.0.0.1")
	stream.event()
	for _, does := range []struct {
		path, id string
		paused   bool
	}{
		{"waitlist/pause", "p1", true}, {"waitlist/resume", "w1", false}, {"pause", "p1", true}, {"open", "w1", false},
	} {
		sitetest.Do[any](s, "POST", "/stockgate/sales/double11/"+does.path, "")
		if id, told := stream.event(); told.State != "waiting" || told.Paused != does.paused || id != does.id {
			t.Errorf("after %s: %s %+v", does.path, id, told)
		}
		if _, told := ben.asks("GET"); told.State != "waiting" || told.Paused != does.paused {
			t.Errorf("after %s a poll says %+v", does.path, told)
		}
	}
}

// A reload ends what is open, so that the old configuration can go; clients learn what is known, and come back.
func TestWaitlistReloadEndsWhatIsOpen(t *testing.T) {
	s, ben, _ := openWaiting(t)
	before := goleak.IgnoreCurrent()
	stream := ben.streams(s.Client(), t.Context(), "http://127.0.0.1")
	stream.event()
	answer := ben.longPoll(t.Context())
	shop := sitetest.NewBackend(t, sitetest.Created)
	reload(s, waitingSite(shop.Addr(), ""))
	if id, told := stream.event(); id != "" {
		t.Errorf("the stream goes on: %s %+v", id, told)
	}
	if a, told := soon(t, answer); told.State != "waiting" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
	}
	stocktest.Eventually(t, "no client that waits", func() bool { return sitetest.Watching() == 0 })
	if told := ben.hears("waiting"); told.Place != 1 {
		t.Errorf("after the reload: %+v", told)
	}
	reload(s, `respond 418`)
	s.Eventually("nothing left", func() (string, bool) {
		err := goleak.Find(before)
		return fmt.Sprint(err), err == nil || !strings.Contains(err.Error(), "WaitlistHandler")
	})
}

// Beyond so many clients that wait a question is answered at once, and never with an error. One that leaves makes room.
func TestWaitlistBoundsThoseThatWait(t *testing.T) {
	s, ben, held := openWaiting(t)
	ctx, leave := context.WithCancel(t.Context())
	left := ben.streams(s.Client(), ctx, "http://127.0.0.1")
	left.event()
	for i := range waitlist.MostWatched - 1 {
		if !sitetest.Watch("double11", fmt.Sprint("other ", i)) {
			t.Fatalf("only %d may wait", i)
		}
	}
	for _, accept := range []string{"*/*", "text/event-stream"} {
		a, told := soon(t, ben.longPoll(t.Context(), "Accept", accept))
		if told.State != "waiting" || a.Header.Get("Retry-After") == "" || a.Header.Get("Preference-Applied") != "" || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", accept, a.Status, a.Header, a.Body)
		}
	}
	leave()
	stocktest.Eventually(t, "room", func() bool { return sitetest.Watching() < waitlist.MostWatched })
	answer := ben.longPoll(t.Context())
	settles(s, held, "release?force=true")
	if _, told := soon(t, answer); told.State != "offered" {
		t.Errorf("%+v", told)
	}
}

// A client whose turn it is not is told where to enter, by gates and checks of the site.
func TestNotYourTurnNamesTheWaitlist(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, strings.Replace(waitingSite(shop.Addr(), ""), "stockgate @order main", `stockgate_check /look check {
		buyer {header.X-User-Id}
		line {json.sku}
	}
	stockgate @order main`, 1))
	fileSays(s, "waitlist: {offer: 10m}")
	orders(s, "ann", `{"sku":"few","quantity":3}`).Is(t, http.StatusCreated, "")
	ben, _ := enters(s, "ben", `{"sku":"few"}`)
	ben.hears("waiting")
	for _, path := range []string{"", "/look"} {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "dan"), `{"sku":"few"}`)
		if path != "" {
			r.URL.Path = path
		}
		a := s.Send(r)
		a.Is(t, http.StatusConflict, "not_your_turn")
		var p refuse.ProblemDocument
		if decode(t, a.Body, &p); p.Waitlist != "/waitlist" {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
}
