package command_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
)

// A sale that moved in and that Redis has lost since is restored with what was bought before it: stock
// and limits go on, and the shop's own Redis, which has other numbers by now, is not read again.
func TestMovedInIsRebuilt(t *testing.T) {
	s, app, own, _ := shopWithRedis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s.Load(app)
	ctx := t.Context()
	if err := errors.Join(own.Set(ctx, "store_1001", 6, 0).Err(), own.HSet(ctx, "bought_1001", "ann", 2, "bob", 1, "cid", 1).Err()); err != nil {
		t.Fatal(err)
	}
	moving := movingFile(s, fmt.Sprintf("stock_from: {redis: %q, key: 'store_{sku}'}\nbought_from: {key: 'bought_{sku}'}\n", shopRedis),
		`{sku: "1001"}`, "{per: buyer, every: sale, max: 2, count: units}")
	s.OK("sale", "apply", moving)
	s.OK("sale", "open", "double11")
	if got := buy(s, "bob", 1); got != "sold" {
		t.Fatal(got)
	}
	show := func() (shown string) { // what is at risk changes by itself
		s.Eventually("the sale with nothing at risk", func() (string, bool) {
			shown = s.OK("sale", "show", "double11")
			return shown, strings.Contains(shown, "1001") && !strings.Contains(shown, "at risk")
		})
		return shown
	}
	before := show()

	c := redis.NewClient(&redis.Options{Addr: app["redis"].(map[string]any)["addresses"].([]string)[0]})
	t.Cleanup(func() { c.Close() })
	keys, err := c.Keys(ctx, "*:meta").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Eventually("the ledger has all", func() (string, bool) {
		last, err := c.HGet(ctx, keys[0], "seq").Int64()
		at, err2 := l.Position(ctx, "double11")
		return fmt.Sprint(at.Seq, last, err, err2), err == nil && err2 == nil && at.Seq == last
	})
	if err := errors.Join(c.FlushAll(ctx).Err(), own.Set(ctx, "store_1001", 99, 0).Err(), own.Del(ctx, "bought_1001").Err()); err != nil {
		t.Fatal(err)
	}
	if out := s.OK("rebuild", "double11", "--from", "ledger"); !strings.Contains(out, "is paused") {
		t.Error(out)
	}
	s.OK("sale", "open", "double11")
	if after := show(); after != before {
		t.Errorf("the sale is\n%s, it was\n%s", after, before)
	}
	if out := s.OK("sale", "apply", moving); !strings.Contains(out, "no change\n") || !strings.Contains(out, "is not read again") {
		t.Error(out)
	}
	for buyer, want := range map[string]string{"ann": "limit_reached", "bob": "limit_reached"} {
		if got := buy(s, buyer, 1); got != want {
			t.Errorf("%s had 2: %s", buyer, got)
		}
	}
	if got := buy(s, "cid", 2); got != "limit_reached" {
		t.Errorf("cid had 1, and gets 2 more: %s", got)
	}
	if got := buy(s, "cid", 1); got != "sold" {
		t.Errorf("cid had 1: %s", got)
	}
	sale := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if sale.Cell("1001", "") != "10 4 0 0 6" || !sale.Balanced || sale.MovedIn == nil || !sale.MovedIn.Done {
		t.Errorf("%+v", sale)
	}
	if out := s.OK("reconcile", "double11"); strings.Contains(strings.ToLower(out), "wrong") {
		t.Error(out)
	}
}
