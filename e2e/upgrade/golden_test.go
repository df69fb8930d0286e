package upgrade_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/filters/webhook"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/token"
)

// recorded is what a released version has made of some orders: TestRecord in record_test.go writes it.
type recorded struct {
	Version string
	JWKS    json.RawMessage
	Tokens  []string          // in the order in which the shop got them
	Secret  string            // of the outbox
	Posts   []post            // of the outbox
	Export  []json.RawMessage // by `caddy stockgate journal export`
	Hashes  map[string]map[string]string
	Entries []redis.XMessage // of the journal
}

type post struct {
	ID, Timestamp, Signature, Body string
}

const (
	goldenSale  = "golden"
	goldenStock = "id: golden\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2099-01-01T00:00:00Z\n" +
		"items:\n  - {sku: plain, stock: 50}\n  - {sku: split, regions: {north: 5, south: 5}}\nlimits:\n  - {per: buyer, every: sale, max: 5, count: units}\n"
)

// goldens are the records of all versions in the field.
func goldens(t *testing.T) (all []recorded) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no record of a version: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, r)
	}
	return all
}

// Tokens of each version in the field are good, and say what they said.
func TestGoldenTokens(t *testing.T) {
	for _, r := range goldens(t) {
		if len(r.Tokens) < 4 {
			t.Errorf("%s: only %d tokens", r.Version, len(r.Tokens))
		}
		for _, text := range r.Tokens {
			raw, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
			if err != nil {
				t.Fatal(err)
			}
			var want token.Claims
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			v, err := token.NewVerifier(token.Options{JWKS: r.JWKS, Audience: want.Audience, Now: func() time.Time { return time.Unix(want.ExpiresAt-1, 0) }})
			if err != nil {
				t.Fatal(err)
			}
			claims, err := v.Verify(text, token.Expect{AnySubject: true, Lines: want.Lines})
			if err != nil {
				t.Errorf("%s: a token is refused: %v\n%s", r.Version, err, raw)
				continue
			}
			again, err := json.Marshal(claims)
			if err != nil || !sameJSON(t, again, raw) {
				t.Errorf("%s: a token is read as %s, and it says %s", r.Version, again, raw)
			}
		}
	}
}

// The journal of each version in the field is read as that version read it, and its records are
// written as they were.
func TestGoldenJournals(t *testing.T) {
	for _, r := range goldens(t) {
		server := redistest.Start(t)
		for _, e := range r.Entries {
			if err := server.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: "stockgate:{golden.0}:journal", ID: e.ID, Values: e.Values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for key, fields := range r.Hashes {
			if err := server.Client().HSet(t.Context(), key, fields).Err(); err != nil {
				t.Fatal(err)
			}
		}
		e := stocktest.NewEdge(t, shard.Options{Addresses: []string{server.Addr()}}, edge.Options{})
		movements, err := e.Store.Journal().Movements(t.Context(), goldenSale, 0, 10_000)
		if err != nil || len(movements) != len(r.Export) || len(movements) < 12 {
			t.Fatalf("%s: %d movements of %d: %v", r.Version, len(movements), len(r.Export), err)
		}
		kinds := map[string]bool{}
		for i, m := range movements {
			kinds[m.Kind] = true
			text, err := json.Marshal(m)
			if err != nil || !sameJSON(t, text, without(t, r.Export[i], "sale", "epoch")) {
				t.Errorf("%s: movement %d is read as\n%s, that version read\n%s", r.Version, m.Seq, text, r.Export[i])
			}
		}
		for _, kind := range []string{"loaded", "applied", "open", "held", "confirmed", "released", "in_doubt", "returned", "adjusted", "paused"} {
			if !kinds[kind] {
				t.Errorf("%s: no movement is %s", r.Version, kind)
			}
		}
		records := r.Hashes["stockgate:{golden.0}:records"]
		for id, text := range records {
			if parsed, err := record.Parse(text); err != nil || parsed.Text() != text {
				t.Errorf("%s: record %s is read as %+v (%v), it is %q", r.Version, id, parsed, err, text)
			}
		}
		if len(records) < 3 {
			t.Errorf("%s: only %d records", r.Version, len(records))
		}
	}
}

// Messages of each version's outbox verify, and have the movements as this tree writes them.
func TestGoldenOutbox(t *testing.T) {
	for _, r := range goldens(t) {
		v, err := webhook.Standard(r.Secret, 0)
		if err != nil {
			t.Fatal(err)
		}
		var movements []json.RawMessage
		for _, p := range r.Posts {
			var message struct {
				Data struct{ Movements []json.RawMessage }
			}
			if err := json.Unmarshal([]byte(p.Body), &message); err != nil {
				t.Fatal(err)
			}
			movements = append(movements, message.Data.Movements...)
			seconds, err := time.ParseDuration(p.Timestamp + "s")
			if err != nil {
				t.Fatal(err)
			}
			head := http.Header{"Webhook-Id": {p.ID}, "Webhook-Timestamp": {p.Timestamp}, "Webhook-Signature": {p.Signature}}
			if err := v.Verify(&webhook.Delivery{Header: head, Body: []byte(p.Body)}, time.Unix(int64(seconds.Seconds()), 0)); err != nil {
				t.Errorf("%s: message %s is refused: %v", r.Version, p.ID, err)
			}
		}
		if len(movements) != len(r.Export) {
			t.Fatalf("%s: the outbox sent %d movements, the journal has %d", r.Version, len(movements), len(r.Export))
		}
		for i := range movements {
			if !sameJSON(t, movements[i], r.Export[i]) {
				t.Errorf("%s: the outbox sent %s, the journal has %s", r.Version, movements[i], r.Export[i])
			}
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool { return bytes.Equal(without(t, a), without(t, b)) }

// without is an object with its names in order, and without some of them.
func without(t *testing.T, text []byte, names ...string) []byte {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		delete(fields, name)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
