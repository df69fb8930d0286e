package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// SaleFile is a sale's file with its items in order. More are lines of YAML such as limits.
func SaleFile(sale string, items []auditor.Units, from, to, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\nstarts_at: %s\nends_at: %s\nitems:\n", sale, from, to)
	for _, u := range items {
		fmt.Fprintf(&b, "  - {sku: %q, stock: %d}\n", u.Cell, u.Qty)
	}
	return b.String() + more + "\n"
}

// Command runs `caddy stockgate …` against this edge; it must succeed.
func (e *Edge) Command(stdin string, args ...string) (string, error) {
	out, status, err := e.CLI(stdin, args...)
	if err == nil && status != 0 {
		err = fmt.Errorf("caddy stockgate %s: exit status %d: %s", strings.Join(args, " "), status, out)
	}
	return out, err
}

// Insist repeats a command, one that may run twice, until it succeeds: with replicas it fails
// when they are late.
func (e *Edge) Insist(stdin string, args ...string) error {
	var failed error
	err := Until("a command succeeds", func() bool {
		_, failed = e.Command(stdin, args...)
		return failed == nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", err, failed)
	}
	return err
}

// ItemState is what the edge's page says of an item.
func (e *Edge) ItemState(sale, sku string) string {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get(e.URL() + "/sales/" + sale + "/items/" + sku)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	var said struct{ State string }
	if json.NewDecoder(r.Body).Decode(&said) != nil || said.State == "" {
		return r.Status
	}
	return said.State
}

// Metric is the sum of a metric's values over its labels.
func Metric(text, name string) (sum float64) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if words := strings.Fields(rest); len(words) > 0 {
			n, _ := strconv.ParseFloat(words[len(words)-1], 64)
			sum += n
		}
	}
	return sum
}

// Told reports whether Redis knows all outcomes of this edge; one that is down has none to tell.
func (e *Edge) Told() bool {
	if !e.Alive() {
		return true
	}
	text, err := e.Metrics()
	return err == nil && Metric(text, "stockgate_backlog") == 0
}
