package connect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/bench/connect"
)

// server answers `sold_out`, and counts connections, resumed ones, and requests by protocol.
type server struct {
	*httptest.Server
	connections, resumed, asked atomic.Int64
	says                        string
}

func start(t *testing.T, proto string) *server {
	t.Helper()
	s := &server{says: "sold_out"}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto == proto && r.URL.Query().Get("buyer") != "" && r.Host == "shop:1" {
			s.asked.Add(1)
		}
		s.connections.Add(1)
		if r.TLS.DidResume {
			s.resumed.Add(1)
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, s.says)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func plan(s *server, http2 bool) connect.Plan {
	p := connect.Plan{Addr: s.Listener.Addr().String(), HTTP2: http2, Host: "shop:1", Says: "sold_out", AtOnce: 4, For: time.Second}
	for i := range 3 {
		target := fmt.Sprintf("/?buyer=%d&long=%s", i, strings.Repeat("x", 200))
		if http2 {
			p.Requests = append(p.Requests, target)
		} else {
			p.Requests = append(p.Requests, "GET "+target+" HTTP/1.1\r\nHost: shop:1\r\n\r\n")
		}
	}
	return p
}

// run runs a plan; step is called with each line that it prints.
func run(t *testing.T, p connect.Plan, step func(string)) error {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	in, say := io.Pipe()
	hear, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := connect.Main(context.Background(), string(text), in, out)
		out.Close()
		done <- err
	}()
	for lines := bufio.NewScanner(hear); lines.Scan(); {
		step(lines.Text())
		if strings.HasPrefix(lines.Text(), "{") || lines.Text() == "open" {
			say.Close()
			continue
		}
		fmt.Fprintln(say)
	}
	return <-done
}

var protocols = map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true}

func TestNewConnections(t *testing.T) {
	for proto, http2 := range protocols {
		for _, resume := range []bool{false, true} {
			s := start(t, proto)
			p := plan(s, http2)
			p.Resume = resume
			var r connect.Result
			if err := run(t, p, func(line string) { _ = json.Unmarshal([]byte(line), &r) }); err != nil {
				t.Fatal(err)
			}
			all, resumed := s.connections.Load(), s.resumed.Load()
			if r.Connections == 0 || r.Seconds <= 0 || all < r.Connections || s.asked.Load() != all || resume != (resumed > all/2) || !resume && resumed != 0 {
				t.Errorf("%s, resumed %t: %+v; the server has seen %d, %d resumed, %d right", proto, resume, r, all, resumed, s.asked.Load())
			}
		}
	}
}

func TestIdleConnections(t *testing.T) {
	for proto, http2 := range protocols {
		s := start(t, proto)
		p := plan(s, http2)
		p.Idle = []int{10, 25}
		var lines []string
		err := run(t, p, func(line string) {
			lines = append(lines, fmt.Sprint(line, " ", s.connections.Load()))
		})
		if want := "10 10, 25 25, open 25"; err != nil || strings.Join(lines, ", ") != want {
			t.Errorf("%s: %v, %q, want %q", proto, err, lines, want)
		}
	}
}

// TestWrongServers: a server that closes idle connections is an error, and so is one that
// answers something else.
func TestWrongServers(t *testing.T) {
	for proto, http2 := range protocols {
		s := start(t, proto)
		p := plan(s, http2)
		p.Idle = []int{5}
		if err := run(t, p, func(line string) { s.CloseClientConnections() }); err == nil || !strings.Contains(err.Error(), "has closed 5 of 5") {
			t.Errorf("%s: %v", proto, err)
		}
		s = start(t, proto)
		s.says = "ok"
		if err := run(t, plan(s, http2), func(string) {}); err == nil || !strings.Contains(err.Error(), "does not say sold_out") {
			t.Errorf("%s: %v", proto, err)
		}
	}
}
