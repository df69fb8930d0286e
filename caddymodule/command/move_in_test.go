package command_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// homeMade is a shop's own script, as such scripts are published, with the keys that it keeps.
type homeMade struct {
	// begin loads 100 units of 1001, script sells: KEYS are those of the item, ARGV is buyer,
	// quantity and order. It returns 1 where it has sold.
	begin  func(ctx context.Context, c *redis.Client) error
	keys   []string
	script string
	// most is how many units a buyer gets.
	most int64
	// file says where the script's keys are.
	file string
	// left is how many units the keys say.
	left func(ctx context.Context, c *redis.Client) (int64, error)
}

var homeMades = map[string]homeMade{
	"a counter and a set of buyers": {
		begin: func(ctx context.Context, c *redis.Client) error {
			return c.Set(ctx, "seckill:stock:1001", 100, 0).Err()
		},
		keys: []string{"seckill:stock:1001", "seckill:order:1001"},
		script: `
			if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 0 end
			if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 0 end
			redis.call('INCRBY', KEYS[1], -1)
			redis.call('SADD', KEYS[2], ARGV[1])
			return 1`,
		most: 1,
		file: "stock_from: {redis: %q, key: 'seckill:stock:{sku}'}\nbought_from: {key: 'seckill:order:{sku}'}\n",
		left: func(ctx context.Context, c *redis.Client) (int64, error) {
			return c.Get(ctx, "seckill:stock:1001").Int64()
		},
	},
	"a hash with total and sell, and a hash of buyers": {
		begin: func(ctx context.Context, c *redis.Client) error {
			return c.HSet(ctx, "stock:{1001}", "total", 100, "sell", 0).Err()
		},
		keys: []string{"stock:{1001}", "bought:{1001}"},
		script: `
			local stock = redis.call('HMGET', KEYS[1], 'total', 'sell')
			local had = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
			if had + ARGV[2] > 2 or tonumber(stock[2]) + ARGV[2] > tonumber(stock[1]) then return 0 end
			redis.call('HINCRBY', KEYS[1], 'sell', ARGV[2])
			redis.call('HINCRBY', KEYS[2], ARGV[1], ARGV[2])
			return 1`,
		most: 2,
		file: "stock_from: {redis: %q, key: 'stock:\\{{sku}\\}', ordered: sell}\nbought_from: {key: 'bought:\\{{sku}\\}'}\n",
		left: func(ctx context.Context, c *redis.Client) (int64, error) {
			total, err := c.HGet(ctx, "stock:{1001}", "total").Int64()
			sell, err2 := c.HGet(ctx, "stock:{1001}", "sell").Int64()
			return total - sell, errors.Join(err, err2)
		},
	},
	"a counter with a hash of flow records": {
		begin: func(ctx context.Context, c *redis.Client) error {
			return errors.Join(c.Set(ctx, "goods:inventory:1001", 100, 0).Err(), c.HSet(ctx, "goods:flow:1001", "INCREASE_first", `{"action":"increase","change":100}`).Err())
		},
		keys: []string{"goods:inventory:1001", "goods:flow:1001"},
		script: `
			if redis.call('HEXISTS', KEYS[2], 'DECREASE_' .. ARGV[3]) == 1 then return 0 end
			local had = 0
			for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
				local flow = cjson.decode(text)
				if flow.by == ARGV[1] then had = had + flow.change end
			end
			local now = tonumber(redis.call('GET', KEYS[1]))
			if had + ARGV[2] > 2 or now < tonumber(ARGV[2]) then return 0 end
			redis.call('SET', KEYS[1], now - ARGV[2])
			redis.call('HSET', KEYS[2], 'DECREASE_' .. ARGV[3], cjson.encode({ action = 'decrease', from = now, to = now - ARGV[2], change = ARGV[2], by = ARGV[1] }))
			return 1`,
		most: 2,
		file: "stock_from: {redis: %q, key: 'goods:inventory:{sku}'}\n" +
			"bought_from: {key: 'goods:flow:{sku}', member: 'DECREASE_{other}', skip: 'INCREASE_{other}', json: {buyer: by, units: change}}\n",
		left: func(ctx context.Context, c *redis.Client) (int64, error) {
			return c.Get(ctx, "goods:inventory:1001").Int64()
		},
	},
	"a list of units and a set of winners": {
		begin: func(ctx context.Context, c *redis.Client) error {
			for i := range 100 {
				if err := c.LPush(ctx, "units_1001", fmt.Sprint("unit", i)).Err(); err != nil {
					return err
				}
			}
			return nil
		},
		keys: []string{"units_1001", "winners"},
		script: `
			if redis.call('SISMEMBER', KEYS[2], '1001:' .. ARGV[1]) == 1 then return 0 end
			if not redis.call('RPOP', KEYS[1]) then return 0 end
			redis.call('SADD', KEYS[2], '1001:' .. ARGV[1])
			return 1`,
		most: 1,
		file: "stock_from: {redis: %q, key: 'units_{sku}'}\nbought_from: {key: winners, member: '{sku}:{buyer}'}\n",
		left: func(ctx context.Context, c *redis.Client) (int64, error) { return c.LLen(ctx, "units_1001").Result() },
	},
}

// shopWithRedis is a site with a gate before a shop, and the shop's own Redis, which wants a
// password.
func shopWithRedis(t *testing.T) (*sitetest.Site, map[string]any, *redis.Client, *atomic.Int64) {
	t.Helper()
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	var orders atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { orders.Add(1) }))
	t.Cleanup(shop.Close)
	s.Shop = strings.TrimPrefix(shop.URL, "http://")
	s.Gate = map[string]any{
		"handler": "stockgate", "buyer": []string{"{header.X-Buyer}"},
		"lines": []any{map[string]any{"sku": []string{"{json.sku}"}, "quantity": []string{"{json.n}"}}},
	}
	s.Load(app)
	own := redistest.Start(t, redistest.Password("top secret"))
	t.Setenv("SHOP_REDIS", "top%20secret")
	t.Setenv("SHOP_REDIS_ADDRESS", own.Addr())
	return s, app, own.Client(), &orders
}

const shopRedis = "redis://:{env.SHOP_REDIS}@{env.SHOP_REDIS_ADDRESS}/0"

// movingFile writes a sale file with that source.
func movingFile(s *sitetest.Site, source, items, limits string) string {
	return s.File("moving.yaml", "id: double11\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\ntimezone: Asia/Shanghai\n"+source+"items: ["+items+"]\nlimits: ["+limits+"]\n")
}

// buy orders through the gate.
func buy(s *sitetest.Site, buyer string, n int64) string {
	a := s.AskWith("http", http.MethodPost, "/order", fmt.Sprintf(`{"sku":"1001","n":%d}`, n), map[string]string{"X-Buyer": buyer, "Content-Type": "application/json"})
	if a.Status == 200 {
		return "sold"
	}
	return a.Header.Get("Stockgate-Refusal")
}

// A sale moves in from a home-made script when half of it is sold: every buyer and every unit
// goes on where the script stopped.
func TestMoveInHalfSold(t *testing.T) {
	for name, h := range homeMades {
		t.Run(name, func(t *testing.T) {
			s, _, own, orders := shopWithRedis(t)
			ctx := t.Context()
			if err := h.begin(ctx, own); err != nil {
				t.Fatal(err)
			}
			script := redis.NewScript(h.script)
			had := make(map[string]int64)
			sold := int64(0)
			for i := 0; sold < 50; i++ {
				buyer := fmt.Sprint("user", i%40)
				n, err := script.Run(ctx, own, h.keys, buyer, 1, fmt.Sprint("order", i)).Int64()
				if err != nil {
					t.Fatal(err)
				}
				if h.most == 1 && i >= 40 {
					buyer = fmt.Sprint("user", i)
					if n, err = script.Run(ctx, own, h.keys, buyer, 1, fmt.Sprint("order", i)).Int64(); err != nil {
						t.Fatal(err)
					}
				}
				had[buyer] += n
				sold += n
			}
			file := movingFile(s, fmt.Sprintf(h.file, shopRedis), `{sku: "1001"}`, fmt.Sprintf("{per: buyer, every: sale, max: %d, count: units}", h.most))

			before, err := own.Info(ctx, "commandstats").Result()
			if err != nil {
				t.Fatal(err)
			}
			out := s.OK("sale", "apply", file, "--dry-run")
			for _, want := range []string{"1001", " with 50 units", "has bought", "new item 1001: stock 100", "with 50 units, made before this sale", "dry run: nothing was changed"} {
				if !strings.Contains(out, want) {
					t.Errorf("the dry run does not say %q:\n%s", want, out)
				}
			}
			if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
				t.Fatalf("the dry run has changed something: %s", out)
			}
			out = s.OK("sale", "apply", file)
			if strings.Contains(out, "warning") || !strings.Contains(out, "redis has all") {
				t.Error(out)
			}
			s.OK("sale", "open", "double11")
			b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
			if b.Cell("1001", "") != "100 50 0 0 50" || !b.Balanced || b.MovedIn == nil || !b.MovedIn.Done || b.MovedIn.Units != 50 {
				t.Fatalf("%+v", b)
			}
			if left, err := h.left(ctx, own); err != nil || left != 50 {
				t.Errorf("the shop's keys say %d, %v: they are only read", left, err)
			}
			after, err := own.Info(ctx, "commandstats").Result()
			for _, line := range strings.Fields(after) {
				command, _, _ := strings.Cut(line, ":")
				if err == nil && strings.HasPrefix(command, "cmdstat_") && strings.Contains(command, "set") && !strings.Contains(before, command+":") {
					t.Errorf("the shop's Redis was written: %s", line)
				}
			}

			for buyer, n := range had { // who had the most gets nothing, others the rest
				for ; n < h.most; n++ {
					if got := buy(s, buyer, 1); got != "sold" {
						t.Fatalf("%s had %d: %s", buyer, n, got)
					}
				}
				if got := buy(s, buyer, 1); got != "limit_reached" {
					t.Fatalf("%s had all: %s", buyer, got)
				}
			}
			// again, now that orders were sold: nothing is read, nothing is charged
			if out := s.OK("sale", "apply", file); !strings.Contains(out, "no change\n") || !strings.Contains(out, "is not read again") {
				t.Error(out)
			}
			for i := 0; ; i++ {
				got := buy(s, fmt.Sprint("new", i), 1)
				if got == "sold_out" {
					break
				}
				if got != "sold" || i > 100 {
					t.Fatalf("new buyer %d: %s", i, got)
				}
			}
			b = sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
			if orders.Load() != 50 || b.Cell("1001", "") != "100 0 0 0 100" || !b.Balanced {
				t.Errorf("the shop has %d orders: %+v", orders.Load(), b)
			}
			if out := s.OK("reconcile", "double11"); !strings.Contains(out, "no difference") && strings.Contains(strings.ToLower(out), "wrong") {
				t.Error(out)
			}
		})
	}
}

// What is wrong in the shop's Redis, or breaks off, opens no sale: the same file again goes on.
func TestMoveInBreaksOff(t *testing.T) {
	s, _, own, _ := shopWithRedis(t)
	ctx := t.Context()
	if err := errors.Join(own.Set(ctx, "store_1001", 5, 0).Err(), own.HSet(ctx, "bought_1001", "ann", 2, "bob", 1).Err()); err != nil {
		t.Fatal(err)
	}
	source := fmt.Sprintf("stock_from: {redis: %q, key: 'store_{sku}'}\nbought_from: {key: 'bought_{sku}'}\n", shopRedis)
	const limits = "{per: buyer, every: sale, max: 2, count: units}, {per: [buyer, ip], every: day, max: 5, count: orders, shadow: true}"
	file := movingFile(s, source, `{sku: "1001"}`, limits)

	for what, c := range map[string]struct{ key, value, says string }{
		"stock":  {"store_1001", "-1", `the key "store_1001" is "-1": the script has counted below 0`},
		"absent": {"store_1001", "", `the key "store_1001" does not exist`},
	} {
		was := own.Get(ctx, c.key).Val()
		if c.value == "" {
			own.Del(ctx, c.key)
		} else {
			own.Set(ctx, c.key, c.value, 0)
		}
		if r := s.Run("sale", "apply", file); r.Status != 1 || !strings.Contains(r.Errors, c.says) || !strings.Contains(r.Errors, "moving.yaml: line 5: stock_from:") || strings.Contains(r.Errors, "secret") {
			t.Errorf("%s: %+v", what, r)
		}
		own.Set(ctx, c.key, was, 0)
	}
	if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
		t.Fatalf("something was applied: %s", out)
	}
	if a := s.Admin("PUT", "/stockgate/sales/double11", s.Read("moving.yaml")); a.Status != 400 || !strings.Contains(a.Body, "stock_from: is filled in by") || !strings.Contains(a.Body, "bought_from: is filled in by") {
		t.Errorf("%+v", a)
	}

	// as after a command that was killed between the file and the purchases
	draft := `{"id":"double11","starts_at":"2020-11-11T00:00:00+08:00","ends_at":"2090-11-12T00:00:00+08:00","timezone":"Asia/Shanghai","items":[{"sku":"1001","stock":8}],"limits":[{"per":"buyer","every":"sale","max":2,"count":"units"},{"per":["buyer","ip"],"every":"day","max":5,"count":"orders","shadow":true}],"moved_in":{"purchases":2,"units":3}}`
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", draft)
	one := `{"purchases":[{"name":"bought_1001\u0000ann","kind":"buyer","value":"ann","orders":1,"lines":[{"sku":"1001","qty":2}]}]}`
	for range 2 { // the same again changes nothing
		sitetest.Do[any](s, "POST", "/stockgate/sales/double11/move_in", one)
	}
	if r := s.Run("sale", "open", "double11"); r.Status != 1 || !strings.Contains(r.Errors, "does not have all purchases that were made before it") {
		t.Errorf("%+v", r)
	}
	if a := s.Admin("PUT", "/stockgate/sales/double11", strings.Replace(draft, `"units":3`, `"units":3,"done":true`, 1)); a.Status != 409 || !strings.Contains(a.Body, "redis has 2 units of purchases of before, the file says 3") {
		t.Errorf("%+v", a)
	}
	if out := s.OK("sale", "show", "double11"); !strings.Contains(out, "not all of 2 purchases of before are here") {
		t.Error(out)
	}
	// a limit that comes later would not know of what is entered already
	if r := s.Run("sale", "apply", movingFile(s, source, `{sku: "1001"}`, limits+", {per: buyer, every: sale, max: 1, count: orders}")); r.Status != 1 || !strings.Contains(r.Errors, "has not counted what was sold while it was not in the file") {
		t.Errorf("%+v", r)
	}
	movingFile(s, source, `{sku: "1001"}`, limits)
	own.HSet(ctx, "bought_1001", "ann", 1) // less than what was entered of ann
	if r := s.Run("sale", "apply", file); r.Status != 1 || !strings.Contains(r.Errors, "a purchase has changed since it was entered") {
		t.Errorf("%+v", r)
	}
	own.HSet(ctx, "bought_1001", "ann", 2)
	out := s.OK("sale", "apply", file)
	for _, want := range []string{"redis has all 2 purchases with 3 units", "begins at 0 for each ip", "what was bought before counts as bought now"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q: %s", want, out)
		}
	}
	s.OK("sale", "open", "double11")
	b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	if b.Cell("1001", "") != "8 5 0 0 3" {
		t.Fatalf("%+v", b)
	}
	if a := s.Admin("POST", "/stockgate/sales/double11/move_in", strings.ReplaceAll(one, "ann", "carl")); a.Status != 409 || !strings.Contains(a.Body, "only into a draft") {
		t.Errorf("%+v", a)
	}
	for _, bad := range []string{`{"purchases":[]}`, strings.Replace(one, `"buyer"`, `"name"`, 1), strings.Replace(one, `"orders":1`, `"orders":0`, 1), strings.Replace(one, `"value":"ann"`, `"value":""`, 1)} {
		if a := s.Admin("POST", "/stockgate/sales/double11/move_in", bad); a.Status != 400 {
			t.Errorf("%s: %+v", bad, a)
		}
	}
	// another limit may be applied later, the shop's Redis may be gone by then, and a new item
	// needs its own stock
	own.FlushAll(ctx)
	if out := s.OK("sale", "apply", movingFile(s, source, `{sku: "1001"}, {sku: own, stock: 3}`, strings.Replace(limits, "max: 2", "max: 3", 1))); !strings.Contains(out, "max 2 → 3") || !strings.Contains(out, "new item own: stock 3") {
		t.Error(out)
	}
	if r := s.Run("sale", "apply", movingFile(s, source, `{sku: "1001"}, {sku: "1002"}`, limits)); r.Status != 1 || !strings.Contains(r.Errors, "item 1002 is new, and the shop's Redis is read only once") {
		t.Errorf("%+v", r)
	}
	if got := buy(s, "ann", 1) + " " + buy(s, "ann", 1); got != "sold limit_reached" {
		t.Error(got)
	}
	plain := movingFile(s, "", `{sku: "1001", stock: 8}, {sku: own, stock: 3}`, limits)
	s.OK("sale", "apply", plain) // what was taken over stays known
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.MovedIn == nil || !b.MovedIn.Done || b.Cell("1001", "") != "8 4 0 0 4" {
		t.Errorf("%+v", b)
	}
}

// The mirror follows the sale through reloads, and `sale show`, the doctor and the metrics tell.
func TestMirrorOfSite(t *testing.T) {
	s, app, own, _ := shopWithRedis(t)
	app["mirror"] = map[string]any{"redis": shopRedis, "sales": []string{"double11"}, "keys": []any{
		map[string]any{"key": "store_{sku}", "value": "available"}, map[string]any{"key": "goods_{sku}", "field": "ordered", "value": "taken"},
	}}
	s.Load(app)
	s.OK("sale", "apply", movingFile(s, "", `{sku: "1001", stock: 8}`, ""))
	if out := s.Run("doctor").Out; !strings.Contains(out, "the mirror of double11 begins when it is opened") {
		t.Error(out)
	}
	s.OK("sale", "open", "double11")
	follows := func(left, taken string) {
		t.Helper()
		s.Eventually("the shop's Redis follows", func() (string, bool) {
			have := own.Get(t.Context(), "store_1001").Val() + " " + own.HGet(t.Context(), "goods_1001", "ordered").Val()
			return have, have == left+" "+taken
		})
	}
	follows("8", "0")
	if got := buy(s, "ann", 3); got != "sold" {
		t.Fatal(got)
	}
	follows("5", "3")
	s.Load(app) // the same again
	app["journal"] = map[string]any{"keep": "24h"}
	s.Load(app) // another worker, which takes over
	if got := buy(s, "bob", 1); got != "sold" {
		t.Fatal(got)
	}
	follows("4", "4")
	tells := func(want string, args ...string) {
		t.Helper()
		s.Eventually(want, func() (string, bool) { out := s.Run(args...).Out; return out, strings.Contains(out, want) })
	}
	tells("mirror: the shop's Redis follows", "sale", "show", "double11")
	tells("the shop's Redis follows double11", "doctor")
	if metrics := s.Get("/metrics").Body; !strings.Contains(metrics, `stockgate_mirror_lag_seconds{sale="double11"} 0`) || !strings.Contains(metrics, `stockgate_mirror_drift_total{sale="double11"} 0`) {
		t.Error("the metrics do not tell")
	}
	own.Decr(t.Context(), "store_1001")
	follows("4", "4")
	tells(`"store_1001" had "3", and the mirror had written 4`, "sale", "show", "double11")
	tells("something else writes keys that the mirror of double11 writes", "doctor")

	s.Gate["shadow"] = true
	if err := s.TryLoad(app); err == nil || !strings.Contains(err.Error(), "leave mirror out until the gate is live") {
		t.Error(err)
	}
	delete(s.Gate, "shadow")
	delete(app, "mirror")
	s.Load(app)
	tells("mirror: no edge writes the shop's Redis now", "sale", "show", "double11")
	tells("no edge mirrors double11", "doctor")
	if log := s.Read("log"); strings.Contains(log, "secret") {
		t.Error("the log has the password")
	}
}
