package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
)

func init() {
	timing.Counts.Set(200 * time.Millisecond) // a test would wait for it
	sitetest.BeCaddy()
}

// ann is the user of basic, whose password is wall.
const ann = "Basic YW5uOndhbGw="

var basic = object{"handler": "authentication", "providers": object{"http_basic": object{
	"accounts": []any{object{"username": "ann", "password": "$2a$04$A6F6Xp8p7JKyxwGWJSxjGOr07AACJICeum9KXXtrLN6iWhUINUd/S"}},
}}}

type object = map[string]any

// at mounts handlers under a path.
func at(path string, handlers ...any) object {
	return object{"handler": "subroute", "routes": []any{object{
		"match":  []any{object{"path": []string{path, path + "/*"}}},
		"handle": append([]any{object{"handler": "rewrite", "strip_path_prefix": path}}, handlers...),
	}}}
}

// page is a dashboard with these options.
func page(options object) object {
	all := object{"handler": "stockgate_dashboard"}
	for name, value := range options {
		all[name] = value
	}
	return all
}

// open starts a site with a dashboard at /open that anyone may read, one at /ops for ann who
// may do everything, and an open sale.
func open(t *testing.T) (*sitetest.Site, sitetest.Shopper) {
	t.Helper()
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{
		at("/open", page(object{"unprotected": true})),
		at("/ops", basic, page(object{"acts": []string{"open", "pause", "close", "stock", "resolve"}})),
	}
	s.Load(app)
	s.Eventually("ready", func() (string, bool) {
		a := s.Get("/open/items?sale=double11")
		return a.Body, a.Status == http.StatusNotFound
	})
	s.OpenSale()
	return s, sitetest.NewShopper(t, server)
}

// post sends what the page sends.
func post(s *sitetest.Site, path, body string, header map[string]string) sitetest.Answer {
	all := map[string]string{"Origin": "http://127.0.0.1", "Content-Type": "application/json", "Authorization": ann}
	for name, value := range header {
		all[name] = value
	}
	return s.AskWith("http", http.MethodPost, path, body, all)
}

// news is what a test reads of an event.
type news struct {
	Sale struct {
		ID, State string
		Timezone  string
		Stock     [5]int64
		Movers    []struct{ SKU string }
		Line      *struct {
			Waiting, Oldest int64
			AtShop          int64 `json:"at_shop"`
			Stopped         bool
		}
		Questions *struct {
			InDoubt int64 `json:"in_doubt"`
			Causes  []struct {
				Cause string
				Holds int
				Units int64
			}
			Doubts []struct{ ID string }
			Ages   []struct {
				Below, Units int64
				Holds        int
			}
		}
		Log []struct {
			Who, Kind, ID string
			Units         int64
			Times         int
		}
		Waitlist *listNews
		Acts     []struct {
			Number          int64
			What, Who, Done string
		}
	}
	Edge struct {
		Queue queueNews
	}
	Attempts struct {
		Total, Rate map[string]float64
		Won, Lost   struct {
			Attempts uint64
			P50, P99 float64
		}
	}
	Alarms  []struct{ Check, Text string }
	Point   []*float64
	History [][]*float64
	Acts    []string
	User    string
}

// queueNews is what a test reads of the queue.
type queueNews struct{ Waiting, Calls, Sending int }

// listen opens a stream of events. The function returns the next one, and false at the end.
func listen(t *testing.T, s *sitetest.Site, path string) func() (event string, n news, ok bool) {
	t.Helper()
	return listenAs(t, s, path, ann)
}

// listenAs is listen, with the credentials of a user.
func listenAs(t *testing.T, s *sitetest.Site, path, login string) func() (event string, n news, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.Patience)
	t.Cleanup(cancel)
	socket := s.Socket("http")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", login)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %d %v", path, resp.StatusCode, resp.Header)
	}
	lines := bufio.NewReader(resp.Body)
	return func() (event string, n news, ok bool) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "", n, false
			}
			if name, is := strings.CutPrefix(line, "event: "); is {
				event = strings.TrimSpace(name)
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				if err := json.Unmarshal([]byte(data), &n); err != nil {
					t.Fatalf("%v in %s", err, data)
				}
				return event, n, true
			}
		}
	}
}

// until reads events until one is as wanted.
func until(t *testing.T, next func() (string, news, bool), want string, so func(news) bool) news {
	t.Helper()
	var last news
	for {
		_, n, ok := next()
		if !ok {
			t.Fatalf("the stream ends before %s; the last event: %+v", want, last)
		}
		if last = n; so(n) {
			return n
		}
	}
}
