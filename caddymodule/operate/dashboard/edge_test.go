package dashboard_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/ports"
)

// edgeSale is the sale of edges in processes of their own.
const edgeSale = `
id: flash
starts_at: 2020-11-11T00:00:00Z
ends_at: 2090-11-12T00:00:00Z
items:
  - {sku: apple, stock: 60}
  - {sku: berry, stock: 40}
  - {sku: cherry, regions: {north: 5, south: 5}}
`

// waiting polls until a condition is true.
func waiting(t testing.TB, what string, so func() bool, log func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(sitetest.Patience)
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s\n%s", what, log())
		}
	}
}

// edgeProcess is a Caddy of its own with a gate and a dashboard, because it must
// end and start again.
type edgeProcess struct {
	t                  testing.TB
	dir, file          string
	gate, admin, pages string // addresses
	cmd                *exec.Cmd
	log                *bytes.Buffer
}

func freeAddress(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + ports.For(t)
}

// startEdgeAt starts an edge on a Redis, with a storage that others may share. Its gate has further options, in front of a
// shop that takes every order but for some buyers.
func startEdgeAt(t testing.TB, redis, storage string, options ...string) *edgeProcess {
	t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch buyer := r.Header.Get("X-User-Id"); {
		case strings.HasPrefix(buyer, "lost"): // the answer says nothing
			w.WriteHeader(http.StatusInternalServerError)
		case buyer == "poor":
			w.WriteHeader(http.StatusPaymentRequired)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(shop.Close)
	e := &edgeProcess{t: t, dir: t.TempDir(), gate: freeAddress(t), admin: freeAddress(t), pages: freeAddress(t)}
	e.file = filepath.Join(e.dir, "Caddyfile")
	text := fmt.Sprintf(`{
	admin %s
	persist_config off
	storage file_system %s
	stockgate {
		redis %s {
			timeout 20s
		}
	}
}
http://%s {
	stockgate_guard
	@order path /order
	stockgate @order {
		buyer {header.X-User-Id}
		line {query.sku} 1
		max_in_flight 4096
		hold_for 10m
		%s
	}
	reverse_proxy %s {
		transport http {
			dial_timeout 1m
		}
	}
}
http://%s {
	basic_auth {
		ann $2a$04$A6F6Xp8p7JKyxwGWJSxjGOr07AACJICeum9KXXtrLN6iWhUINUd/S
	}
	handle_path /ops/* {
		stockgate_dashboard {
			acts
		}
	}
	handle_path /wall/* {
		stockgate_dashboard
	}
}
`, e.admin, storage, redis, e.gate, strings.Join(options, "\n\t\t"), shop.Listener.Addr(), e.pages)
	if err := os.WriteFile(e.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e.start()
	t.Cleanup(func() { e.stop() })
	return e
}

// start starts the process, and waits until it answers.
func (e *edgeProcess) start() {
	e.t.Helper()
	self, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	e.log = new(bytes.Buffer)
	e.cmd = exec.Command(self, "run", "--config", e.file, "--adapter", "caddyfile")
	e.cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "HOME="+e.dir, "XDG_DATA_HOME="+e.dir, "XDG_CONFIG_HOME="+e.dir)
	e.cmd.Stdout, e.cmd.Stderr = e.log, e.log
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.until("the edge answers", func() bool {
		r, err := http.Get("http://" + e.admin + "/stockgate/sales")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// stop kills the process, as a crash does.
func (e *edgeProcess) stop() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

func (e *edgeProcess) until(what string, so func() bool) {
	e.t.Helper()
	waiting(e.t, what, so, func() string { return e.log.String() })
}

// ask sends a request to the admin endpoint, which must succeed.
func (e *edgeProcess) ask(method, path, body string) string {
	e.t.Helper()
	req, err := http.NewRequest(method, "http://"+e.admin+"/stockgate/"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		e.t.Fatalf("%s %s: %d %s", method, path, r.StatusCode, text)
	}
	return string(text)
}

// order orders a unit as a buyer, and returns the status.
func (e *edgeProcess) order(client *http.Client, buyer, sku string) int {
	req, err := http.NewRequest(http.MethodPost, "http://"+e.gate+"/order?sku="+sku, nil)
	if err != nil {
		return 0
	}
	req.Header.Set("X-User-Id", buyer)
	r, err := client.Do(req)
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return r.StatusCode
}

// rush lets so many buyers order at once, and returns how many got an order.
func (e *edgeProcess) rush(buyers int, skus ...string) (orders int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var crowd sync.WaitGroup
	var mu sync.Mutex
	for i := range buyers {
		crowd.Go(func() {
			if e.order(client, fmt.Sprint("buyer", i), skus[i%len(skus)]) == http.StatusCreated {
				mu.Lock()
				orders++
				mu.Unlock()
			}
		})
	}
	crowd.Wait()
	return orders
}

// rushAs orders once as a buyer.
func (e *edgeProcess) rushAs(buyer, sku string) int { return e.order(http.DefaultClient, buyer, sku) }
