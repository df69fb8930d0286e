package notify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/internal/notify"
	"github.com/stockgate/stockgate/internal/post"
	"github.com/stockgate/stockgate/internal/store/notices"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

const secretPath = "/T0KEN-s3cret"

// receiver is a chat.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	ids    []string
	bodies []string
	// answer answers the n-th request.
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.ids, r.bodies = append(r.ids, request.Header.Get("Webhook-Id")), append(r.bodies, string(body))
		n, answer := len(r.bodies), r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(n, w, request)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) came() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

func (r *receiver) target(t *testing.T) *notify.ReceiverOptions {
	t.Helper()
	target := &notify.ReceiverOptions{URL: r.URL + secretPath, Form: notify.Slack, Timeout: time.Second}
	if err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	return target
}

// counts counts.
type counts struct {
	mu         sync.Mutex
	answers    map[string]int
	sent       int
	lost, wait int64
}

func newCounts() *counts { return &counts{answers: map[string]int{}} }

func (c *counts) NoticePosted(answer string)                { c.mu.Lock(); c.answers[answer]++; c.mu.Unlock() }
func (c *counts) NoticesSent(n int)                         { c.mu.Lock(); c.sent += n; c.mu.Unlock() }
func (c *counts) NoticesLost(n int64)                       { c.mu.Lock(); c.lost += n; c.mu.Unlock() }
func (c *counts) NoticesWait(n int64, oldest time.Duration) { c.mu.Lock(); c.wait = n; c.mu.Unlock() }

// run runs a sender until the test ends.
func run(t *testing.T, n *notices.Notices, target *notify.ReceiverOptions, c *counts) (s *notify.Courier, logs *observer.ObservedLogs, stop func()) {
	core, logs := observer.New(zapcore.InfoLevel)
	r := notify.NewReceiver(target)
	s = &notify.Courier{Notices: n, Receiver: r, Log: zap.New(core), Metrics: c, Retry: notify.Retry{Soon: time.Millisecond, Most: 20 * time.Millisecond}, Held: func() bool { return true }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		r.Close()
	})
	t.Cleanup(stop)
	return s, logs, stop
}

func openNotices(t *testing.T, b redistest.Backend) *notices.Notices {
	return notices.New(stocktest.OpenStore(t, stocktest.Options(b)).Shard(), 0)
}

func raise(t *testing.T, n *notices.Notices, about, text string) {
	t.Helper()
	if ok, err := n.Raise(stocktest.Soon(t), about, "", "1", &notices.Notice{Kind: "stock", Sale: "s", State: "sold_out", Text: text, Command: "caddy stockgate sale show s"}); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

// Whatever the receiver answers at first, it gets each message, in order, and no other place does. Its URL is in no log.
func TestReceiversThatFail(t *testing.T) {
	elsewhere := newReceiver(t)
	for name, answer := range map[string]func(n int, w http.ResponseWriter, r *http.Request){
		"500": func(n int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) },
		"404": func(n int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) },
		"429": func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		},
		"307": func(n int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+secretPath, http.StatusTemporaryRedirect)
		},
		"302": func(n int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+secretPath, http.StatusFound)
		},
		"aborted": func(n int, w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"silent":  func(n int, w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, r, c := openNotices(t, redistest.Start(t)), newReceiver(t), newCounts()
			r.answer = func(i int, w http.ResponseWriter, request *http.Request) {
				if i <= 2 {
					answer(i, w, request)
				}
			}
			raise(t, n, "a", "one")
			raise(t, n, "b", "two")
			_, logs, stop := run(t, n, r.target(t), c)
			stocktest.Eventually(t, "it has them", func() bool { return len(r.came()) == 3 })
			stocktest.Eventually(t, "nothing waits", func() bool { w, err := n.Waiting(stocktest.Soon(t)); return err == nil && w.Waiting == 0 })
			stop()
			all := r.came()
			if all[0] != all[2] || !strings.Contains(all[2], "one") || !strings.Contains(all[2], "two") {
				t.Errorf("it got %q", all)
			}
			if logs.FilterMessageSnippet("does not take").Len() == 0 || logs.FilterMessageSnippet("takes notices again").Len() != 1 {
				t.Errorf("the log has %v", logs.All())
			}
			for _, entry := range logs.All() {
				if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "T0KEN") || strings.Contains(text, "127.0.0.1:"+strings.Split(r.URL, ":")[2]+"/") {
					t.Errorf("the log has the URL: %s", text)
				}
			}
			if c.sent != 2 || c.answers["2xx"] != 1 {
				t.Errorf("%+v", c)
			}
		})
	}
	t.Cleanup(func() {
		if got := elsewhere.came(); len(got) > 0 {
			t.Errorf("a redirect was followed: %q", got)
		}
	})
}

// A message that the receiver cannot read does not hold up the others for good.
func TestUnreadableMessage(t *testing.T) {
	n, r, c := openNotices(t, redistest.Start(t)), newReceiver(t), newCounts()
	r.answer = func(i int, w http.ResponseWriter, request *http.Request) {
		if i <= 5 {
			w.WriteHeader(400)
		}
	}
	raise(t, n, "a", "bad")
	run(t, n, r.target(t), c)
	stocktest.Eventually(t, "it is dropped", func() bool { w, err := n.Waiting(stocktest.Soon(t)); return err == nil && w.Waiting == 0 })
	raise(t, n, "b", "good")
	stocktest.Eventually(t, "the next one comes", func() bool { return len(r.came()) == 6 })
	if last := r.came()[5]; !strings.Contains(last, "good") || !strings.Contains(last, "1 earlier notices") {
		t.Error(last)
	}
}

// Two edges send, one at a time, and the first dies after the receiver has answered: the same message has the same id.
func TestTheSameIDTwice(t *testing.T) {
	b := redistest.Start(t)
	first, second, r := openNotices(t, b), openNotices(t, b), newReceiver(t)
	secret, err := post.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	target := &notify.ReceiverOptions{URL: r.URL, Secrets: []post.Secret{secret}, Page: "https://ops.example.com/"}
	if err := target.Validate(); err != nil || target.Form != notify.Webhook {
		t.Fatal(target.Form, err)
	}
	raise(t, first, "a", "one")
	var m *notices.Digest
	stocktest.Eventually(t, "it is due", func() bool { m, _, err = first.Take(stocktest.Soon(t)); return err == nil && m != nil })
	dying := notify.NewReceiver(target)
	defer dying.Close()
	if a := dying.Post(t.Context(), m); !a.Accepted() {
		t.Fatal(a)
	}
	raise(t, second, "b", "two")
	run(t, second, target, newCounts())
	stocktest.Eventually(t, "the other goes on", func() bool { return len(r.came()) == 3 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[0] != r.ids[1] || r.bodies[0] != r.bodies[1] || r.ids[2] == r.ids[1] || r.ids[0] != m.ID {
		t.Errorf("ids %q, bodies %q", r.ids, r.bodies)
	}
	var body struct {
		Type      string
		Timestamp time.Time
		Data      struct {
			Notices []notices.Notice
			Page    string
		}
	}
	if err := json.Unmarshal([]byte(r.bodies[0]), &body); err != nil || body.Type != notify.MessageType || len(body.Data.Notices) != 1 || body.Data.Page != "https://ops.example.com/?sale=s" || !body.Timestamp.Equal(body.Data.Notices[0].At) {
		t.Errorf("%v in %s", err, r.bodies[0])
	}
}

// TLS is verified.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	target := &notify.ReceiverOptions{URL: s.URL + secretPath, Form: notify.Slack}
	if err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	r := notify.NewReceiver(target)
	defer r.Close()
	a := r.Post(t.Context(), &notices.Digest{Notices: []notices.Notice{{Text: "x"}}})
	if fault := notify.Fault(a); fault == nil || !strings.Contains(fault.Error(), "certificate") || strings.Contains(fault.Error(), "T0KEN") {
		t.Errorf("%v", fault)
	}
}

// No text from elsewhere calls anyone, or becomes a link, in any chat.
func TestHostileTexts(t *testing.T) {
	r := newReceiver(t)
	target := r.target(t)
	target.Page = "https://ops.example.com/?a=1&b=2"
	to := notify.NewReceiver(target)
	defer to.Close()
	hostile := "<!channel> <@U123> @here @everyone @channel [click](https://evil.example) `rm` *bold* <https://evil.example|x> & \u202e\x1b[31m\nline"
	if a := to.Post(t.Context(), &notices.Digest{Lost: 3, Notices: []notices.Notice{{Text: hostile, Command: "caddy `x` <!here>"}}}); !a.Accepted() {
		t.Fatal(a)
	}
	var m struct {
		Text   string
		Blocks []struct {
			Type string
			Text struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal([]byte(r.came()[0]), &m); err != nil {
		t.Fatal(err)
	}
	texts := []string{m.Text}
	for _, b := range m.Blocks {
		texts = append(texts, b.Text.Text)
	}
	for _, text := range texts {
		for _, bad := range []string{"<!", "<@", "@here", "@everyone", "@channel", "](", "<https://evil", "\u202e", "\x1b", "`rm`", "*bold*"} {
			if strings.Contains(text, bad) {
				t.Errorf("%q has %q", text, bad)
			}
		}
	}
	if !strings.Contains(m.Text, "&lt;!channel&gt;") || !strings.Contains(m.Text, "<https://ops.example.com/?a=1&amp;b=2|Open the page>") || !strings.Contains(m.Text, "3 earlier notices") {
		t.Error(m.Text)
	}
}

// Notices from the memory of an edge come too, as many as have room.
func TestDirect(t *testing.T) {
	r, c := newReceiver(t), newCounts()
	block := make(chan struct{})
	r.answer = func(n int, w http.ResponseWriter, request *http.Request) {
		if n == 1 {
			<-block
			w.WriteHeader(503)
		}
	}
	target := r.target(t)
	target.Timeout = time.Minute
	to := notify.NewReceiver(target)
	d := notify.NewDirect(to, c, notify.Retry{Soon: time.Millisecond, Most: time.Millisecond}, "web-1-A")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	for i := range 30 {
		d.Tell(notices.Notice{Kind: "edge", Text: fmt.Sprintf("number %02d", i)})
	}
	stocktest.Eventually(t, "it is asked", func() bool { return len(r.came()) > 0 })
	close(block)
	stocktest.Eventually(t, "the last one comes", func() bool { all := r.came(); return strings.Contains(all[len(all)-1], "number 29") })
	cancel()
	<-done
	to.Close()
	if all := strings.Join(r.came(), "\n"); !strings.Contains(all, "earlier notices") || !strings.Contains(all, "number 10") {
		t.Error(all)
	}
}

// Every mistake in a target is an error that says what to do, and none repeats the URL.
func TestTargets(t *testing.T) {
	secret := []post.Secret{make(post.Secret, 32)}
	for want, target := range map[string]notify.ReceiverOptions{
		"slack":                  {URL: "https://hooks.slack.com/services/T0KEN"},
		"slack 2":                {URL: "https://discord.com/api/webhooks/1/T0KEN/slack"},
		"slack 3":                {URL: "https://chat.example.com/hooks/T0KEN", Form: notify.Slack},
		"webhook":                {URL: "https://ops.example.com/T0KEN", Secrets: secret},
		"webhook 2":              {URL: "http://127.0.0.1:9000/T0KEN", Secrets: secret, Form: notify.Webhook},
		"how does the receiver":  {URL: "https://chat.example.com/hooks/T0KEN"},
		"verifies no signature":  {URL: "https://hooks.slack.com/services/T0KEN", Secrets: secret},
		"a chat verifies no":     {URL: "https://chat.example.com/T0KEN", Form: notify.Slack, Secrets: secret},
		"there is no secret":     {URL: "https://ops.example.com/T0KEN", Form: notify.Webhook},
		"cannot read a signed":   {URL: "https://hooks.slack.com/services/T0KEN", Form: notify.Webhook, Secrets: nil},
		"there is no form":       {URL: "https://ops.example.com/T0KEN", Form: "teams"},
		"write /slack":           {URL: "https://discord.com/api/webhooks/1/T0KEN"},
		"is empty":               {},
		"whole http":             {URL: "hooks.slack.com/T0KEN"},
		"a user":                 {URL: "https://T0KEN@hooks.slack.com/"},
		"a fragment":             {URL: "https://hooks.slack.com/#T0KEN"},
		"page: the URL":          {URL: "https://hooks.slack.com/T0KEN", Page: "T0KEN"},
		"is outside 1s to 1m":    {URL: "https://hooks.slack.com/T0KEN", Timeout: time.Hour},
		"without placeholders":   {URL: "https://hooks.slack.com/{T0KEN}"},
		"without placeholders 2": {URL: "ftp://hooks.slack.com/T0KEN"},
	} {
		form, wantsForm := map[string]notify.Form{"slack": notify.Slack, "webhook": notify.Webhook}[strings.Fields(want)[0]]
		err := target.Validate()
		switch {
		case wantsForm && (err != nil || target.Form != form):
			t.Errorf("%s: %v, %v", want, target.Form, err)
		case !wantsForm && err == nil, !wantsForm && !strings.Contains(err.Error(), strings.TrimSuffix(want, " 2")) && want != "cannot read a signed":
			t.Errorf("%q: %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "T0KEN") {
			t.Errorf("the error has the URL: %v", err)
		}
	}
}
