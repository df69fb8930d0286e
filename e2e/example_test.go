package e2e_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/redistest"
)

// The example that users copy adapts without a warning and sells.
func TestCaddyfileExample(t *testing.T) {
	t.Parallel()
	const example = "../Caddyfile.example"
	adapt := exec.Command(caddyBinary, "adapt", "--config", example, "--adapter", "caddyfile", "--validate")
	adapt.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := adapt.CombinedOutput()
	if err != nil {
		t.Fatalf("adapt: %v\n%s", err, out)
	}
	if strings.Contains(string(out), `"level":"warn"`) && strings.Contains(string(out), `"adapter":"caddyfile"`) {
		t.Errorf("adapting warns:\n%s", out)
	}

	server := redistest.Start(t)
	e := newEdge(t, "")
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"code":0}`)
	}}
	e.env = []string{
		"STOCKGATE_SITE=http://" + e.addr, "STOCKGATE_REDIS=" + server.Addr(), "STOCKGATE_SHOP=" + serve(t, s),
		"CADDY_ADMIN=unix/" + e.admin,
	}
	e.startFile(example)
	e.sell("double11", oneUnit)
	buyer := one("", "7", 1, "")
	if r := e.buy(buyer); r.status != http.StatusUnauthorized || r.reason != "" {
		t.Errorf("without a password: %v", r)
	}
	buyer.header = http.Header{"Authorization": {"Basic YnV5ZXI6c3RvY2tnYXRl"}}
	if r := e.buy(buyer); r.status != http.StatusCreated {
		t.Errorf("with the password: %v", r)
	}
	if s.orders() != 1 {
		t.Errorf("the shop got %+v", s.requests())
	}
	e.expect("double11", 0, 0, 0, 1)
	if status, _, _ := e.get("/anything"); status != http.StatusCreated {
		t.Errorf("browsing: %d", status)
	}
}
