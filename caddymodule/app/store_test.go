package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// serverOf is the process of a store's redis-server, as the doctor names it; empty: it says another thing.
func serverOf(s *sitetest.Site) string {
	_, rest, _ := strings.Cut(s.Admin("GET", "/stockgate/doctor", "").Body, "runs as process ")
	pid, _, _ := strings.Cut(rest, " ")
	return pid
}

// A store sells, by one server for all configurations, and ends it with the last one.
func TestStore(t *testing.T) {
	dir, err := os.MkdirTemp("", "sg") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := func(name string, more ...any) map[string]any {
		store := map[string]any{"dir": filepath.Join(dir, name), "timeout": "1m"}
		for i := 0; i < len(more); i += 2 {
			store[more[i].(string)] = more[i+1]
		}
		return map[string]any{"store": store}
	}
	s := sitetest.Open(t, at("stock"))
	s.OpenSale()
	first := serverOf(s)
	if first == "" {
		t.Fatal(s.Admin("GET", "/stockgate/doctor", "").Body)
	}

	// a reload to other options goes on with the server, and what it has
	s.Load(at("stock", "timeout", "50s", "memory", 64<<20))
	if now := serverOf(s); now != first {
		t.Errorf("after a reload the server is process %s, not %s", now, first)
	}
	if a := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(a.Body, "64 MiB, maxmemory") || !strings.Contains(a.Body, "syncs a record in") {
		t.Errorf("the doctor says\n%s", a.Body)
	}
	s.Admin("GET", "/stockgate/sales/double11", "").Is(t, http.StatusOK, "")

	// away, and back before the first server has ended
	s.Load(at("an@other:one"))
	if serverOf(s) == first {
		t.Error("another store has the same server")
	}
	s.Admin("GET", "/stockgate/sales/double11", "").Is(t, http.StatusNotFound, "")
	s.Load(at("stock"))
	s.Eventually("the sale is there", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/sales/double11", "")
		return a.Body, a.Status == http.StatusOK
	})

	for _, wrong := range []struct {
		app  map[string]any
		says string
	}{
		{map[string]any{"store": map[string]any{"dir": dir}, "redis": map[string]any{"embedded": true}}, "`store` and `redis` both say where the stock is"},
		{map[string]any{}, "nothing says where the stock is"},
		{map[string]any{"store": map[string]any{}}, "no directory given"},
		{map[string]any{"store": map[string]any{"dir": "{env.NOT_SET}"}}, "store: directory"},
		{at("stock", "memory", 1000), "too little for a sale"},
		{at("stock", "timeout", "1ms"), "timeout 1ms is outside"},
		{at("no/such/parent"), "install -d -m 700"},
		{at("third", "redis_server", "no-such-program"), "there is no program no-such-program"},
	} {
		if err := s.TryLoad(wrong.app); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%v: %v, want …%s…", wrong.app, err, wrong.says)
		}
	}
	s.Admin("GET", "/stockgate/sales/double11", "").Is(t, http.StatusOK, "")

	// the last configuration ends the server
	pid, err := strconv.Atoi(serverOf(s))
	if err != nil {
		t.Fatal(err)
	}
	s.Load(map[string]any{"redis": map[string]any{"embedded": true}})
	s.Eventually("the server has ended", func() (string, bool) {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return "", os.IsNotExist(err)
	})
}
