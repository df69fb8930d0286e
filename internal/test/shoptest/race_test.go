//go:build shops

package shoptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// carts is how many carts are changed while they are paid: $CARTS, or as many as showed the
// fault without one_at_a_time.
func carts(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CARTS")
	if text == "" {
		return 60
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CARTS is %q", text)
	}
	return n
}

// race does something n times, some of them at once.
func race(t *testing.T, n, atOnce int, one func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		all.Go(func() {
			for i := range next {
				if err := one(i); err != nil {
					t.Errorf("cart %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// together does several things at once.
func together(things ...func() error) error {
	errs := make([]error, len(things))
	var all sync.WaitGroup
	for i, do := range things {
		all.Go(func() { errs[i] = do() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ask sends a GET to the admin endpoint of an edge.
func (g *gates) ask(edge int, path string) []byte {
	g.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(g.admins[edge], "unix/"))
	}}}
	r, err := client.Get("http://127.0.0.1" + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %s %v %s", path, r.Status, err, text)
	}
	return text
}

// units returns how many units of the item are held, in_doubt or confirmed.
func (g *gates) units(column string) int64 {
	g.t.Helper()
	text := g.ask(0, "/stockgate/sales/flash")
	var show struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(text, &show); err != nil || len(show.Items) != 1 {
		g.t.Fatalf("%v: %s", err, text)
	}
	n, ok := show.Items[0][column].(float64)
	if !ok {
		g.t.Fatalf("no %s in %s", column, text)
	}
	return int64(n)
}

// settled waits until no hold is open.
func (g *gates) settled() {
	g.t.Helper()
	g.edges[0].until(g.t, "every hold is settled", func() bool { return g.units("held")+g.units("in_doubt") == 0 })
}

// asks returns how often an order had other lines than its reservation.
func (g *gates) asks() string {
	g.t.Helper()
	var found []string
	for edge := range g.edges {
		for line := range strings.Lines(string(g.ask(edge, "/metrics"))) {
			if strings.HasPrefix(line, "stockgate_asks_total{") && (strings.Contains(line, `"fewer"`) || strings.Contains(line, `"more"`)) {
				found = append(found, fmt.Sprint(edge, " ", strings.TrimSpace(line)))
			}
		}
	}
	return strings.Join(found, "\n")
}
