package operator_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const observability = "../../../examples/observability/"

// alertRules reads the rules that operators load.
func alertRules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(observability + "stockgate.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]string)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules[r.Alert] = r.Expr
		}
	}
	return rules
}

var stockgateLine = regexp.MustCompile(`(?m)^stockgate_[^r].*$`)

var metricName = regexp.MustCompile(`stockgate_[a-z_]+`)

// documented reports whether the page of metrics has one of this name, with labels or without.
func documented(page, name string) bool {
	return strings.Contains(page, "`"+name+"`") || strings.Contains(page, "`"+name+"{")
}

// Rules and dashboard use only metrics that the program has.
func TestObservabilityNamesMetrics(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile(observability + "stockgate.dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(dashboard, &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels: %v", len(board.Panels), err)
	}
	exprs := alertRules(t)
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			exprs[fmt.Sprintf("%s %d", p.Title, i)] = target.Expr
		}
	}
	for where, expr := range exprs {
		for _, name := range metricName.FindAllString(expr, -1) {
			if !documented(string(page), strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s: no metric %s is documented", where, name)
			}
		}
	}
}

// metrics are the series of Stockgate in a scrape, and which of them count up.
type metrics struct {
	values   map[string]float64
	counters map[string]bool
}

func scrape(t *testing.T, s *sitetest.Site) metrics {
	t.Helper()
	return parse(t, s.Get("/metrics").Body)
}

func parse(t *testing.T, exported string) metrics {
	t.Helper()
	m := metrics{map[string]float64{}, map[string]bool{}}
	types := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(exported))
	for lines.Scan() {
		line := lines.Text()
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" {
			types[f[2]] = f[3]
		}
		if !strings.HasPrefix(line, "stockgate_") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		m.values[line[:at]] = v
		kind := types[metricName.FindString(line)]
		m.counters[line[:at]] = kind == "counter" || kind == "" // of a histogram: _bucket, _sum, _count
	}
	return m
}

// healthySite is an edge with an open sale, and its metrics.
func healthySite(t *testing.T) (server *redistest.Server, s *sitetest.Site, healthy metrics) {
	server, app := sitetest.Redis(t)
	s = sitetest.Open(t, app)
	s.OpenSale()
	s.Eventually("all metrics", func() (string, bool) {
		m := s.Get("/metrics").Body
		healthy = parse(t, m)
		return strings.Join(stockgateLine.FindAllString(m, -1), "\n"), strings.Contains(m, `stockgate_balanced{sale="double11"} 1`) && strings.Contains(m, `stockgate_degraded{part="view"} 0`)
	})
	return server, s, healthy
}

// Every alert fires when what it is about has happened to a running edge, and none before. The
// metrics are those that the edge exports before and after; promtool evaluates the rules on
// them, as if the cause went on for a quarter of an hour.
func TestEveryAlertFires(t *testing.T) {
	server, s, healthy := healthySite(t)
	key := func(name string) string { return "stockgate:{double11.0}:" + name }
	redis := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	client, ctx := server.Client(), t.Context()
	causes := []struct {
		alert string
		cause func()
		until string // in the metrics
		undo  func()
	}{
		{"StockgateInDoubt", func() {
			sitetest.NewShopper(t, server).Doubts(time.Hour, map[string]string{"r1": "timeout"}, "r1")
			redis(client.ZIncrBy(ctx, key("in_doubt"), -700_000, "r1").Err()) // it became so 700 s ago
		}, `stockgate_oldest_in_doubt_seconds{sale="double11"} [7-9]\d\d`, nil},
		{"StockgateQueueStands", func() {
			shopper := sitetest.NewShopper(t, server)
			shopper.Order("q1", sitetest.Queue(1))
			shopper.Order("q2", sitetest.Queue(1))
			first, err := client.ZRange(ctx, key("line"), 0, 0).Result()
			redis(err)
			order, err := client.HGet(ctx, key("orders"), first[0]).Result()
			redis(err)
			words := strings.Fields(order) // see lua/queue.lua
			words[4] = strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10)
			redis(client.HSet(ctx, key("orders"), first[0], strings.Join(words, " ")).Err())
			redis(client.HSet(ctx, key("queue"), "s0", "0 0", "s1", "0 0", "s2", "0 0", "s3", "0 0", "s4", "0 0", "s5", "0 0", "s6", "0 0", "s7", "0 0", "s8", "0 0", "s9", "0 0").Err())
		}, `stockgate_queue_oldest_seconds{sale="double11"} 3[6-9]\d\d`, func() {
			sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/drain", "")
		}},
		{"StockgateQueueSkipped", func() {
			sitetest.NewShopper(t, server).Order("q3", sitetest.Queue(1))
			first, err := client.ZRange(ctx, key("line"), 0, 0).Result()
			redis(err)
			redis(client.ZIncrBy(ctx, key("line"), 4e15, first[0]).Err()) // see lua/queue.lua
		}, `stockgate_queue_skipped{sale="double11"} 1`, func() {
			sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/drain", "")
		}},
		{"StockgateUnbacked", func() { redis(client.ZIncrBy(ctx, key("unbacked"), 1, "r9").Err()) }, `stockgate_unbacked{sale="double11"} 1`,
			func() { redis(client.ZRem(ctx, key("unbacked"), "r9").Err()) }},
		{"StockgateClockStepped", func() { redis(client.HSet(ctx, key("meta"), "lead", 5000).Err()) }, `stockgate_clock_lead_seconds{sale="double11"} [45]`, nil},
		{"StockgateNotBalanced", func() { redis(client.HSet(ctx, key("cells"), "plain", "100 1 0 0 0").Err()) }, `stockgate_balanced{sale="double11"} 0`, nil},
		{"StockgateSilentEdge", func() {
			long := time.Now().Add(-10 * time.Minute).UnixMilli()
			redis(client.HSet(ctx, key("meta"), "silent", fmt.Sprint(long, " ", long, " web-2-AAAA")).Err()) // see lua/silent.lua
		}, `stockgate_silent_edges 1`, func() { redis(client.HDel(ctx, key("meta"), "silent").Err()) }},
		{"StockgateAroundGate", func() { meter.All().Around.WithLabelValues("passed").Inc() }, `stockgate_around_total{answer="passed"} [1-9]`, nil},
		{"StockgateSlowReserve", func() {
			for range 100 {
				meter.EdgeEvents{}.Reserved("", 300*time.Millisecond)
			}
		}, `stockgate_reserve_seconds_count [1-9]\d\d`, nil},
		{"StockgateLedgerBehind", func() { meter.JournalService{}.Journal("double11", journal.Head{Age: 2 * time.Minute}, true, nil) }, `stockgate_ledger_lag_seconds{sale="double11"} 120`,
			func() { meter.JournalService{}.NoJournal("double11") }},
		{"StockgateOutboxBehind", func() { meter.JournalService{}.OutboxLag("double11", 5, 2*time.Minute) }, `stockgate_outbox_lag_seconds{sale="double11"} 120`,
			func() { meter.JournalService{}.NoOutbox("double11") }},
		{"StockgateShopFails", func() {
			for range 20 {
				meter.CountShopAnswer("double11", 201)
				meter.CountShopAnswer("double11", 500)
				meter.CountShopAnswer("double11", 0)
			}
		}, `stockgate_shop_answers_total{answer="none",sale="double11"} 20`, nil},
		{"StockgateWaitlistNearlyFull", func() {
			sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {max: 1}\n")
			shopper := sitetest.NewShopper(t, server)
			shopper.Hold("all", "few", 3, time.Hour)
			desk := waitlist.NewDesk(shopper.Store)
			defer desk.Close()
			if _, no, err := desk.Enter(ctx, &waitlist.Entrant{Sale: "double11", Cell: "few", Quantity: 1, Buyer: "ann", Most: 1}); no != nil || err != nil {
				t.Fatal(no, err)
			}
		}, `stockgate_waitlist_people{sale="double11"} 1`, func() { sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile) }},
		{"StockgateNotifyFails", func() { meter.NoticeEvents{}.NoticesWait(3, 5*time.Minute) }, `stockgate_notices_oldest_seconds 300`,
			func() { meter.NoticeEvents{}.NoticesWait(0, 0) }},
		{"StockgateBacklog", func() { meter.EdgeEvents{}.BacklogDropped() }, `stockgate_backlog_dropped_total [1-9]`, nil},
		{"StockgateSaleLost", func() {
			keys, err := client.Keys(ctx, key("*")).Result()
			redis(err)
			redis(client.Del(ctx, keys...).Err())
		}, `stockgate_sale_lost{sale="double11"} 1`, func() {
			sitetest.Do[any](s, "PUT", "/stockgate/sales/double11?new=1", sitetest.SaleFile)
			sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
		}},
		{"StockgateRedisErrors", func() {
			for range 20 {
				meter.EdgeEvents{}.RedisFailed("watch")
			}
		}, `stockgate_redis_errors_total{during="watch"} ` + more(healthy.values[`stockgate_redis_errors_total{during="watch"}`]), nil},
		{"StockgateNotSelling", func() { sitetest.Silence(t); server.Stop() }, `stockgate_ready 0`, nil},
		{"StockgateDegraded", func() {}, `stockgate_degraded{part="view"} 1`, nil},
		{"StockgateBypass", func() {
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			s.Redis = server.Addr()
			redis(s.LoadCaddyfile("stockgate /order pay {\n\t\tbuyer {header.X-User}\n\t\tline {query.sku}\n\t}\n\tmetrics /metrics\n\treverse_proxy 127.0.0.1:9"))
			sitetest.Do[any](s, "POST", "/stockgate/gates/pay/bypass", `{"for":"1h"}`)
		}, `stockgate_bypass{gate="pay"} 1`, nil},
	}
	used := usedByRules(t)
	tests, made := firingOfSeveral(healthy.only(used))
	for i, c := range causes {
		c.cause()
		if strings.Contains(c.until, "double11") && i < 6 { // overviews are read again when the journal goes on
			sitetest.NewShopper(t, server).Hold(fmt.Sprint("moves", i), "plain", 1, time.Hour)
		}
		so := regexp.MustCompile(`(?m)^` + strings.NewReplacer("{", `\{`, "}", `\}`).Replace(c.until))
		s.Eventually(c.until, func() (string, bool) {
			m := s.Get("/metrics").Body
			return strings.Join(stockgateLine.FindAllString(m, -1), "\n"), so.MatchString(m)
		})
		after := scrape(t, s).only(used)
		if c.alert == "StockgateDegraded" {
			after.values["stockgate_ready"] = 1 // Redis is back, and the memory is not yet
		}
		tests = append(tests, firing(c.alert, healthy, after))
		if c.undo != nil {
			c.undo()
		}
		made = append(made, c.alert)
	}
	fire(t, tests)
	for alert := range alertRules(t) {
		if !slices.Contains(made, alert) {
			t.Errorf("no test makes the cause of %s", alert)
		}
	}
}

// firingOfSeveral are tests of the alerts that compare edges, or miss series, and the names of these alerts. healthy are
// the metrics of an edge that sells.
func firingOfSeveral(healthy metrics) (tests []any, made []string) {
	edge := func(name string, extra map[string]float64, without ...string) metrics {
		m := metrics{make(map[string]float64), healthy.counters}
		maps.Copy(m.values, healthy.values)
		maps.Copy(m.values, extra)
		for _, metric := range without {
			maps.DeleteFunc(m.values, func(series string, _ float64) bool { return strings.HasPrefix(series, metric) })
		}
		return m.labelled(`job="stockgate",instance="` + name + `"`)
	}
	up, down := map[string]float64{"up": 1}, map[string]float64{"up": 0}
	all := edge("a", up).and(edge("b", up))
	for _, c := range []struct {
		alert string
		after metrics
	}{
		{"StockgateNotReady", edge("a", map[string]float64{"stockgate_ready": 0}).and(edge("b", nil))},
		{"StockgateStoreDown", edge("a", map[string]float64{"stockgate_ready": 0, "stockgate_store_up": 0}).and(edge("b", nil))},
		{"StockgateStoreDisk", edge("a", map[string]float64{"stockgate_store_up": 1, "stockgate_store_disk_free_bytes": 1 << 29})},
		{"StockgateStoreDisk", edge("a", map[string]float64{"stockgate_store_up": 1, "stockgate_store_disk_free_bytes": 1 << 40, "stockgate_store_disk_lasts_seconds": 7200})},
		{"StockgateMissing", edge("a", down, "stockgate_").and(edge("b", down, "stockgate_"))},
		{"StockgateDown", edge("a", down, "stockgate_").and(edge("b", up))},
		{"StockgateSilent", edge("a", up, "stockgate_").and(edge("b", up))},
		{"StockgateSaleMissing", edge("a", up, "stockgate_sale").and(edge("b", up, "stockgate_sale"))},
	} {
		tests, made = append(tests, firing(c.alert, all, c.after)), append(made, c.alert)
	}
	answered := func(answers map[string]float64) map[string]float64 {
		all := map[string]float64{"up": 1, `stockgate_oldest_in_doubt_seconds{sale="double11"}`: 900}
		for answer, n := range answers {
			series := `stockgate_shop_answers_total{answer="` + answer + `",sale="double11"}`
			all[series], healthy.counters[series] = n, true
		}
		return all
	}
	asked := edge("a", answered(map[string]float64{"none": 0, "2xx": 0}))
	asked.values[`stockgate_oldest_in_doubt_seconds{job="stockgate",instance="a",sale="double11"}`] = 0
	gone := metrics{values: map[string]float64{}, counters: healthy.counters}
	closed := edge("a", map[string]float64{`stockgate_sale_open{sale="double11"}`: 0})
	for name, c := range map[string]struct{ before, after metrics }{
		"all edges are away: one alert": {all, edge("a", down, "stockgate_").and(edge("b", down, "stockgate_"))},
		"the series of all edges end":   {all, gone},
		"the shop fails, and doubts":    {asked, edge("a", answered(map[string]float64{"none": 30, "2xx": 30}))},
		"an edge is down, and silent":   {all, edge("a", down, "stockgate_").and(edge("b", map[string]float64{"up": 1, "stockgate_silent_edges": 1}))},
		"a full store ends its server":  {edge("a", up), edge("a", map[string]float64{"stockgate_ready": 0, "stockgate_store_up": 0, "stockgate_store_disk_free_bytes": 0, "stockgate_store_disk_lasts_seconds": 0})},
	} {
		tests = append(tests, pages(name, c.before, c.after, 1))
	}
	for name, c := range map[string]struct{ before, after metrics }{
		"an edge is taken away":         {all, edge("b", up)},
		"a closed sale is deleted":      {closed, edge("a", nil, "stockgate_sale")},
		"another program does not run":  {all.and(metrics{values: map[string]float64{`up{job="shop",instance="c"}`: 1}}), all.and(metrics{values: map[string]float64{`up{job="shop",instance="c"}`: 0}})},
		"a sale that one edge lacks":    {all, edge("a", up).and(edge("b", up, "stockgate_sale"))},
		"the edges go on as they began": {all, all},
		"a store with room":             {edge("a", up), edge("a", map[string]float64{"stockgate_store_up": 1, "stockgate_store_restarts_total": 1, "stockgate_store_disk_free_bytes": 1 << 40, "stockgate_store_disk_lasts_seconds": 1e6})},
	} {
		tests = append(tests, pages(name, c.before, c.after, 0))
	}
	return tests, made
}

// Two edges whose Redis is away fire one alert.
func TestDeadRedisIsOneAlert(t *testing.T) {
	server, s, healthy := healthySite(t)
	sitetest.Silence(t)
	server.Stop()
	s.Eventually("the edge feels it", func() (string, bool) {
		m := s.Get("/metrics").Body
		return m, strings.Contains(m, "stockgate_ready 0") && strings.Contains(m, `stockgate_degraded{part="view"} 1`)
	})
	of := func(m metrics) metrics {
		m = m.only(usedByRules(t))
		return m.labelled(`job="stockgate",instance="a"`).and(m.labelled(`job="stockgate",instance="b"`))
	}
	fire(t, []any{pages("one dead Redis", of(healthy), of(scrape(t, s)), 1), firing("StockgateNotSelling", of(healthy), of(scrape(t, s)))})
}

// pages is a test that so many alerts fire once the metrics of after have lasted for a while.
func pages(name string, before, after metrics, alerts float64) map[string]any {
	test := firing(name, before, after)
	for _, check := range test["promql_expr_test"].([]any)[1:] {
		check.(map[string]any)["expr"] = `count(ALERTS{alertstate="firing"}) or vector(0)`
		check.(map[string]any)["exp_samples"] = []any{map[string]any{"labels": "{}", "value": alerts}}
	}
	return test
}

// labelled are the same series with further labels.
func (m metrics) labelled(labels string) metrics {
	all := metrics{make(map[string]float64), make(map[string]bool)}
	for series, v := range m.values {
		name, own, found := strings.Cut(series, "{")
		with := name + "{" + labels + "}"
		if found {
			with = name + "{" + labels + "," + own
		}
		all.values[with], all.counters[with] = v, m.counters[series]
	}
	return all
}

// and are the series of both.
func (m metrics) and(other metrics) metrics {
	all := metrics{maps.Clone(m.values), make(map[string]bool)}
	maps.Copy(all.values, other.values)
	maps.Copy(all.counters, m.counters)
	maps.Copy(all.counters, other.counters)
	return all
}

// What alerts say has whole numbers and units.
func TestAlertsSpeakToPeople(t *testing.T) {
	alert := func(at, name, labels, summary, description string, series ...string) map[string]any {
		var input []any
		for i := 0; i < len(series); i += 2 {
			input = append(input, map[string]any{"series": series[i], "values": series[i+1]})
		}
		var of map[string]string
		if err := yaml.Unmarshal([]byte("{"+labels+"}"), &of); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"name": name, "interval": "5s", "input_series": input, "alert_rule_test": []any{map[string]any{
			"eval_time": at, "alertname": name, "exp_alerts": []any{map[string]any{"exp_labels": of, "exp_annotations": map[string]any{"summary": summary, "description": description}}},
		}}}
	}
	fire(t, []any{
		alert("5m", "StockgateRedisErrors", "instance: a, severity: warning", "Redis did not answer 22 calls of a in a minute", "Look at Redis, its disk and the network between.",
			`stockgate_redis_errors_total{instance="a",during="watch"}`, "0+0.82x100", `stockgate_redis_errors_total{instance="a",during="reap"}`, "0+1x100", `stockgate_ready{instance="a"}`, "1x100"),
		alert("5m", "StockgateQueueStands", "sale: flash, severity: warning", "Orders of flash wait for 2m 3s, and none goes to the shop", "caddy stockgate doctor says what holds the line up. See docs/queue.md.",
			`stockgate_queue_oldest_seconds{sale="flash"}`, "123x100", `stockgate_queue_pace{sale="flash"}`, "0x100"),
		alert("5m", "StockgateWaitlistNearlyFull", "sale: flash, severity: warning", "The waiting list of flash has 80% of the people whom it takes", "People beyond are refused as list_full. Raise waitlist.max in the sale file, and apply it.",
			`stockgate_waitlist_people{sale="flash"}`, "160000x100", `stockgate_waitlist_most{sale="flash"}`, "200000x100"),
		alert("5m", "StockgateClockStepped", "sale: flash, severity: warning", "Redis's clock has stepped by 5s during flash", "Let NTP slew it. See docs/failover.md#clocks.",
			`stockgate_clock_lead_seconds{sale="flash"}`, "-5x100"),
		alert("5m", "StockgateUnbacked", "sale: flash, severity: warning", "The shop took 1234567 orders of flash without stock", "Add stock and confirm them, or refund them: caddy stockgate holds flash --state unbacked",
			`stockgate_unbacked{sale="flash"}`, "1234567x100"),
	})
}

// more is a pattern for a count that is larger than it was by two at least.
func more(than float64) string {
	var counts []string
	for n := range 100 {
		counts = append(counts, fmt.Sprint(than+2+float64(n)))
	}
	return "(" + strings.Join(counts, "|") + ")"
}

// usedByRules has the names of the metrics that rules use.
func usedByRules(t *testing.T) map[string]bool {
	used := make(map[string]bool)
	for _, expr := range alertRules(t) {
		for _, name := range metricName.FindAllString(expr, -1) {
			used[name] = true
		}
	}
	return used
}

// only drops the series of other metrics.
func (m metrics) only(names map[string]bool) metrics {
	kept := metrics{make(map[string]float64), m.counters}
	for series, v := range m.values {
		if names[metricName.FindString(series)] {
			kept.values[series] = v
		}
	}
	return kept
}

// firing is a test for promtool: an alert does not fire while the metrics are those of before, and
// fires when they have been those of after for a while.
func firing(alert string, before, after metrics) map[string]any {
	const healthy, wrong = 60, 180 // samples, one in 5 s
	type series struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	var input []series
	for name, v := range after.values {
		was, known := before.values[name]
		if !known && after.counters[name] {
			was, known = 0, true
		}
		step, first := 0.0, fmt.Sprintf("%gx%d", was, healthy-1)
		if after.counters[name] {
			step = v - was // the cause goes on
		}
		if !known {
			first = fmt.Sprintf("_x%d", healthy-1)
		}
		input = append(input, series{name, fmt.Sprintf("%s %g+%gx%d", first, v, step, wrong)})
	}
	for name, v := range before.values {
		if _, still := after.values[name]; !still {
			input = append(input, series{name, fmt.Sprintf("%gx%d stale _x%d", v, healthy-1, wrong)})
		}
	}
	expr := fmt.Sprintf(`sum(min_over_time(ALERTS{alertname=%q,alertstate="firing"}[5s])) > bool 0 or vector(0)`, alert)
	check := func(at string, want float64) map[string]any {
		return map[string]any{"expr": expr, "eval_time": at, "exp_samples": []any{map[string]any{"labels": "{}", "value": want}}}
	}
	return map[string]any{"name": alert, "interval": "5s", "input_series": input, "promql_expr_test": []any{check("4m", 0), check("14m", 1)}}
}

// fire runs tests of the rules in promtool.
func fire(t *testing.T, tests []any) {
	t.Helper()
	rules, err := filepath.Abs(observability + "stockgate.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	text, err := yaml.Marshal(map[string]any{"rule_files": []string{rules}, "evaluation_interval": "15s", "tests": tests})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A real Prometheus takes the rules, scrapes an edge through its configuration, and fires the
// alert of a lost sale.
func TestPrometheusFires(t *testing.T) {
	out, err := exec.Command("promtool", "check", "rules", observability+"stockgate.rules.yml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := startPrometheus(t, s)
	p.until("the edge is scraped", `/api/v1/query?query=stockgate_ready`, `"1"]`)
	keys, err := server.Client().Keys(t.Context(), "stockgate:{double11.0}:*").Result()
	if err == nil {
		err = server.Client().Del(t.Context(), keys...).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.until("the alert fires", `/api/v1/alerts`, `"alertname":"StockgateSaleLost"`)
}
