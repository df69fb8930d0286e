package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// The example that users copy adapts without a warning, and is right for a plain shop: 4xx
// gives the unit back, 201 sells it.
func TestCaddyfileExample(t *testing.T) {
	t.Parallel()
	const example = "../Caddyfile.example"
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	unguarded := filepath.Join(t.TempDir(), "Caddyfile") // so that it is seen what a warning looks like
	if err := os.WriteFile(unguarded, bytes.ReplaceAll(text, []byte("\tstockgate_guard\n"), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, warns := range map[string]bool{example: false, unguarded: true} {
		adapt := caddyCommand("adapt", "--config", file, "--adapter", "caddyfile", "--validate")
		adapt.Env = append(adapt.Env, "HOME="+t.TempDir())
		out, err := adapt.CombinedOutput()
		if err != nil {
			t.Fatalf("adapt: %v\n%s", err, out)
		}
		if regexp.MustCompile(`"level":"warn".*"logger":"caddyfile"`).Match(out) != warns {
			t.Errorf("adapting %s warns %t, want %t:\n%s", file, !warns, warns, out)
		}
	}

	e := newEdge(t, "")
	var refuses atomic.Bool
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			http.Error(w, "no such address", http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "ordered")
	}}
	e.env = []string{
		"STOCKGATE_SITE=http://" + e.addr, "STOCKGATE_STORE=" + filepath.Join(e.dir, "store"), "STOCKGATE_SHOP=" + serve(t, s),
		"CADDY_ADMIN=unix/" + e.admin,
	}
	patient := strings.Replace(string(text), "timeout 500ms", "timeout 20s", 1)
	if patient == string(text) {
		t.Fatal("the example has no timeout")
	}
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(patient), 0o600); err != nil {
		t.Fatal(err)
	}
	e.startFile(file)
	e.sell("double11", oneUnit)
	buyer := one("", "7", 1, "")
	if r := e.buy(buyer); r.status != http.StatusUnauthorized || r.reason != "" {
		t.Errorf("without a password: %v", r)
	}
	buyer.header = http.Header{"Authorization": {"Basic YnV5ZXI6c3RvY2tnYXRl"}}
	refuses.Store(true)
	if r := e.buy(buyer); r.status != http.StatusUnprocessableEntity || r.reason != "" {
		t.Errorf("the shop refuses: %v", r)
	}
	e.expect("double11", 1, 0, 0, 0)
	refuses.Store(false)
	if r := e.buy(buyer); r.status != http.StatusCreated {
		t.Errorf("with the password: %v", r)
	}
	if s.orders() != 2 {
		t.Errorf("the shop got %+v", s.requests())
	}
	e.expect("double11", 0, 0, 0, 1)
	if status, _, _ := e.get("/anything"); status != http.StatusCreated {
		t.Errorf("browsing: %d", status)
	}
}
