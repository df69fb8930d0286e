package sitetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Answer is what a server answered.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Admin asks the admin endpoint.
func (s *Site) Admin(method, path, body string) Answer {
	s.T.Helper()
	return s.Ask("admin", method, path, body)
}

// Get asks the site.
func (s *Site) Get(path string) Answer {
	s.T.Helper()
	return s.Ask("http", http.MethodGet, path, "")
}

// Ask asks a server: http or admin.
func (s *Site) Ask(server, method, path, body string) Answer {
	s.T.Helper()
	return s.AskWith(server, method, path, body, nil)
}

// AskWith asks with these headers.
func (s *Site) AskWith(server, method, path, body string, header map[string]string) Answer {
	s.T.Helper()
	req, err := http.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	if host := header["Host"]; host != "" {
		req.Host = host
	}
	req.Header.Set("Stockgate-By", "ann\tof\x80 accounts")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: server == "admin" || path == "/metrics", // with the race detector it takes longer than the answer
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.Socket(server))
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(raw)}
}

// Do sends a request to the admin endpoint that must succeed, and reads the answer into T.
func Do[T any](s *Site, method, path, body string) T {
	s.T.Helper()
	a := s.Admin(method, path, body)
	if a.Status != http.StatusOK {
		s.T.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
	}
	var v T
	dec := json.NewDecoder(strings.NewReader(a.Body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		s.T.Fatalf("%s %s: %v in %s", method, path, err, a.Body)
	}
	return v
}

// Logged returns the fields of the log entries with a message.
func (s *Site) Logged(message string) []map[string]any {
	s.T.Helper()
	raw, err := os.ReadFile(s.Path("log"))
	if err != nil {
		s.T.Fatal(err)
	}
	var found []map[string]any
	for line := range bytes.Lines(raw) {
		var entry map[string]any
		if err := json.Unmarshal(line, &entry); err != nil {
			s.T.Fatalf("%v in %s", err, line)
		}
		if entry["msg"] == message {
			found = append(found, entry)
		}
	}
	return found
}

// Is checks status and reason of an answer.
func (a Answer) Is(t *testing.T, status int, reason string) {
	t.Helper()
	if a.Status != status || a.Header.Get("Stockgate-Refusal") != reason {
		t.Errorf("%d %s, want %d %s: %s", a.Status, a.Header.Get("Stockgate-Refusal"), status, reason, a.Body)
	}
}

// Eventually checks a condition until it is true. It never waits for a fixed time, and
// fails after a very long one.
func (s *Site) Eventually(want string, so func() (string, bool)) {
	s.T.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(Patience)
	for {
		got, ok := so()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.T.Fatalf("it is %s, not %s", got, want)
		}
	}
}
