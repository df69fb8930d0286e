package operator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/ports"
)

// prometheus is a running Prometheus that scrapes a site.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus starts Prometheus with the example's configuration, but for the addresses and
// how often it scrapes.
func startPrometheus(t *testing.T, s *sitetest.Site) *prometheus {
	t.Helper()
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the site listens on a socket
		fmt.Fprint(w, s.Get("/metrics").Body)
	}))
	t.Cleanup(metrics.Close)
	config, err := os.ReadFile(observability + "prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(observability + "stockgate.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("edge1:2020", strings.TrimPrefix(metrics.URL, "http://"), `, "edge2:2020"`, "", ": 5s", ": 1s", "stockgate.rules.yml", rules).Replace(string(config))
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + ports.For(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return &prometheus{t, "http://" + address}
}

// until asks until the answer has a text.
func (p *prometheus) until(what, path, text string) {
	p.t.Helper()
	deadline := time.Now().Add(sitetest.Patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for last := ""; ; <-tick.C {
		if resp, err := http.Get(p.url + path); err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if last = string(body); strings.Contains(last, text) {
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not yet: %s: %s", what, last)
		}
	}
}
