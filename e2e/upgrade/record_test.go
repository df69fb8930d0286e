//go:build upgrade

package upgrade_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/test/auditor/rig"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

var recordAs = flag.String("record", "", "write what the last version makes of some orders into testdata, under this version")

// TestRecord lets the last version sell, and writes what it leaves: go test -tags upgrade
// ./e2e/upgrade -run TestRecord -record 1.0.0-rc.1. Records of earlier versions stay.
func TestRecord(t *testing.T) {
	if *recordAs == "" {
		t.Log("nothing is recorded without -record")
		return
	}
	r := recorded{Version: *recordAs, Secret: "whsec_" + strings.Repeat("c2Vj", 8), Hashes: map[string]map[string]string{}}
	var mu sync.Mutex
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		mu.Lock()
		defer mu.Unlock()
		if q.URL.Path == "/movements" {
			r.Posts = append(r.Posts, post{q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"), q.Header.Get("webhook-signature"), string(body)})
			return
		}
		r.Tokens = append(r.Tokens, q.Header.Get("Stockgate-Token"))
		switch q.Header.Get("X-User-Id") {
		case "refused":
			w.WriteHeader(http.StatusUnprocessableEntity)
		case "lost":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer shop.Close()
	server := redistest.Start(t)
	e, err := rig.NewEdge(binary(t), "edge", t.TempDir(), t.TempDir())
	must(t, err)
	addr := strings.TrimPrefix(shop.URL, "http://")
	must(t, e.Run(rig.Site{Redis: rig.RedisAt(server.Addr(), "5s"), Shop: addr, App: "outbox " + shop.URL + "/movements {\n\t\t\tsecret " + r.Secret + "\n\t\t}"}))
	defer e.Terminate()
	command := func(stdin string, args ...string) string {
		out, err := e.Command(stdin, args...)
		must(t, err)
		return out
	}
	command(goldenStock, "sale", "apply", "-")
	command("", "sale", "open", goldenSale)
	must(t, rig.Until("the edge sells", func() bool { return e.ItemState(goldenSale, "plain") == "on_sale" }))
	var sold string
	for _, order := range []struct{ buyer, body string }{
		{"ann", `{"items":[{"sku":"plain","quantity":2}],"order_no":"SO-1"}`}, {"bob", `{"items":[{"sku":"split","quantity":1}],"region":"north"}`},
		{"refused", `{"items":[{"sku":"plain","quantity":1}]}`}, {"lost", `{"items":[{"sku":"plain","quantity":1}]}`}, {"雪 \"q\"", `{"items":[{"sku":"plain","quantity":1}]}`},
	} {
		q, err := http.NewRequest("POST", e.URL()+"/api/order", strings.NewReader(order.body))
		must(t, err)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("X-User-Id", order.buyer)
		q.Header.Set("Idempotency-Key", "key-of-"+order.buyer)
		answer, err := http.DefaultClient.Do(q)
		must(t, err)
		answer.Body.Close()
		if order.buyer == "ann" {
			sold = answer.Header.Get("Stockgate-Reservation")
		}
	}
	command("", "reservation", "return", sold, "plain=1", "--id", "return-1")
	command("", "stock", "add", goldenSale, "plain", "5", "--id", "more-1")
	command("", "sale", "pause", goldenSale)
	must(t, rig.Until("every outcome is told", e.Told))
	for _, line := range strings.Split(strings.TrimSpace(command("", "journal", "export", goldenSale)), "\n") {
		r.Export = append(r.Export, json.RawMessage(line))
	}
	must(t, rig.Until("the outbox has sent all", func() bool {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, p := range r.Posts {
			n += strings.Count(p.Body, `"seq":`)
		}
		return n >= len(r.Export)
	}))
	answer, err := http.Get(e.URL() + "/.well-known/jwks.json")
	must(t, err)
	r.JWKS, err = io.ReadAll(answer.Body)
	must(t, err)
	c := server.Client()
	r.Entries, err = c.XRange(t.Context(), "stockgate:{golden.0}:journal", "-", "+").Result()
	must(t, err)
	for _, name := range []string{"meta", "cells", "limits", "records", "bindings"} {
		key := rig.Key(goldenSale, name)
		r.Hashes[key], err = c.HGetAll(t.Context(), key).Result()
		must(t, err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	must(t, enc.Encode(r))
	must(t, os.MkdirAll("testdata", 0o755))
	must(t, os.WriteFile("testdata/"+r.Version+".json", out.Bytes(), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
