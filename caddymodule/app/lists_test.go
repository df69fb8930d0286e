package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/goleak"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// openShop starts a site with a gate before /order; options are the gate's.
func openShop(t *testing.T, app, options map[string]any) *sitetest.Site {
	t.Helper()
	s := sitetest.Open(t, nil)
	useGate(s, options)
	s.Load(app)
	return s
}

// useGate puts a gate before /order, and behind it a shop that says which token and
// which body it got. The shop closes with the test, or by closeShop.
func useGate(s *sitetest.Site, options map[string]any) (closeShop func()) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Header.Get("Stockgate-Token"), body)
	}))
	s.T.Cleanup(shop.Close)
	s.Shop = shop.Listener.Addr().String()
	s.Gate = gateWith(options)
	return shop.Close
}

func gateWith(options map[string]any) map[string]any {
	gate := map[string]any{
		"handler": "stockgate", "buyer": []string{"{header.X-Buyer}"},
		"lines_from": map[string]any{"array": "{json.items}", "sku": "sku", "quantity": "n"},
		"identities": map[string]any{"phone": []string{"{json.phone}"}},
	}
	maps.Copy(gate, options)
	return gate
}

// bid is one request to buy.
type bid struct {
	buyer, ip, phone string
	skus             string // with space between them
	n                int
	body             string // instead of the last three
}

// order sends a bid. It returns the reason of the refusal, or whether the shop got
// it with a token or without.
func bidFor(s *sitetest.Site, b bid) string {
	s.T.Helper()
	if b.body == "" {
		var items []map[string]any
		for sku := range strings.FieldsSeq(b.skus) {
			items = append(items, map[string]any{"sku": sku, "n": max(1, b.n)})
		}
		raw, err := json.Marshal(map[string]any{"items": items, "phone": b.phone})
		if err != nil {
			s.T.Fatal(err)
		}
		b.body = string(raw)
	}
	header := map[string]string{"Content-Type": "application/json", "X-Buyer": b.buyer, "Stockgate-Token": "forged"}
	if b.ip != "" {
		header["X-Forwarded-For"] = b.ip
	}
	a := s.AskWith("http", "POST", "/order", b.body, header)
	if a.Status != 200 {
		if reason := a.Header.Get("Stockgate-Refusal"); reason != "" {
			return reason
		}
		s.T.Fatalf("%+v", a)
	}
	token, body, _ := strings.Cut(a.Body, " ")
	switch {
	case body != b.body:
		s.T.Errorf("the shop got %q instead of %q", body, b.body)
	case token == "":
		return "passed"
	case strings.Count(token, ".") != 2:
		s.T.Errorf("the shop got the token %q", token)
	}
	return "sold"
}

// becomes waits until a bid ends like this.
func becomes(s *sitetest.Site, want string, b bid) {
	s.T.Helper()
	s.Eventually(want, func() (string, bool) {
		got := bidFor(s, b)
		return got, got == want
	})
}

func openToBidders(s *sitetest.Site) {
	s.T.Helper()
	s.Eventually("ready", func() (string, bool) {
		a := s.Admin("PUT", "/stockgate/sales/double11", sitetest.ListsSale)
		return a.Body, a.Status == 200
	})
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
}

func fileSource(path string) map[string]any {
	return map[string]any{"source": "file", "path": path}
}

var redisSource = map[string]any{"source": "redis"}

// Refusals have an order of precedence: malformed, denied, the sale's state, not eligible,
// quantity.
func TestDenyAndAllow(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	app["lists"] = map[string]any{
		"bad": fileSource(s.File("bad.txt", "buyer:mallory\nphone:1 555\n192.0.2.0/24\n")), "worse": redisSource,
		"staff": fileSource(s.File("staff.txt", "buyer:ann\nbuyer:mallory\n")), "vips": redisSource,
	}
	useGate(s, map[string]any{"deny": []string{"bad", "worse"}, "allow": []string{"staff", "vips"}})
	s.Load(app)
	openToBidders(s)
	s.OK("list", "add", "worse", "buyer:eve", "phone:1  666")
	s.OK("list", "add", "vips", "buyer:bob", "buyer:eve", "198.51.100.7")
	const home = "198.51.100.1"
	becomes(s, "denied", bid{buyer: "eve", ip: home, skus: "plain"})
	becomes(s, "sold", bid{buyer: "bob", ip: home, skus: "plain"})
	for _, c := range []struct {
		bid  bid
		want string
	}{
		{bid{buyer: "ann", ip: home, skus: "plain"}, "sold"},
		{bid{buyer: "zoe", ip: "198.51.100.7", skus: "plain"}, "sold"},
		{bid{buyer: "zoe", ip: "::ffff:198.51.100.7", skus: "plain"}, "sold"},
		{bid{buyer: "mallory", ip: home, skus: "plain"}, "denied"},
		{bid{buyer: "ann", ip: "192.0.2.77", skus: "plain"}, "denied"},
		{bid{buyer: "ann", ip: home, phone: " 1  555", skus: "plain"}, "denied"},
		{bid{buyer: "ann", ip: home, phone: "1 666", skus: "plain"}, "denied"},
		{bid{buyer: "zoe", ip: home, skus: "plain"}, "not_eligible"},
		{bid{buyer: "zoe", ip: home, phone: "ann", skus: "plain"}, "not_eligible"},

		{bid{buyer: "mallory", ip: home, body: "{"}, "malformed"},
		{bid{buyer: "mallory", ip: home, skus: "nosuch"}, "denied"},
		{bid{buyer: "zoe", ip: home, skus: "nosuch"}, "unknown_item"},
		{bid{buyer: "zoe", ip: home, skus: "plain", n: 3}, "not_eligible"},
		{bid{buyer: "ann", ip: home, skus: "plain", n: 3}, "quantity"},
		{bid{buyer: "ann", skus: "plain"}, "unavailable"}, // the buyer's region is not known
	} {
		if got := bidFor(s, c.bid); got != c.want {
			t.Errorf("%+v: %s, want %s", c.bid, got, c.want)
		}
	}
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/pause", "")
	becomes(s, "paused", bid{buyer: "zoe", ip: home, skus: "plain"})
	if got := bidFor(s, bid{buyer: "eve", ip: home, skus: "plain"}); got != "denied" {
		t.Errorf("of a paused sale: %s", got)
	}
	s.Eventually("counted", func() (string, bool) { // of a list in Redis when it was read
		m := s.Get("/metrics").Body
		return m, strings.Contains(m, `stockgate_list_entries{list="bad"} 3`) && strings.Contains(m, `stockgate_list_entries{list="vips"} 3`)
	})
}

// A list changes for all edges, and while they run.
func TestListsChange(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	path := s.File("bad.txt", "# empty\n")
	app["lists"] = map[string]any{"bad": fileSource(path), "worse": redisSource}
	useGate(s, map[string]any{"deny": []string{"bad", "worse"}})
	s.Load(app)
	openToBidders(s)
	const home = "198.51.100.1"
	becomes(s, "sold", bid{buyer: "ann", ip: home, skus: "plain"})

	other := otherEdge(s, app)
	if r := sitetest.Run(t, "", "--address", other, "list", "add", "worse", "buyer:eve", "203.0.113.0/24"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	becomes(s, "denied", bid{buyer: "eve", ip: home, skus: "plain"})
	becomes(s, "denied", bid{buyer: "ann", ip: "203.0.113.9", skus: "plain"})
	if r := sitetest.Run(t, "", "--address", other, "list", "remove", "worse", "buyer:eve"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	becomes(s, "sold", bid{buyer: "eve", ip: home, skus: "plain"})

	if err := os.WriteFile(path+".new", []byte("buyer:dan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	becomes(s, "denied", bid{buyer: "dan", ip: home, skus: "plain"})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.Eventually("in trouble", func() (string, bool) {
		l := sitetest.Do[listState](s, "GET", "/stockgate/lists/bad", "")
		return fmt.Sprintf("%+v", l), l.Entries == 1 && strings.Contains(l.Error, path)
	})
	if got := bidFor(s, bid{buyer: "dan", ip: home, skus: "plain"}); got != "denied" {
		t.Errorf("the file is gone, and so is the list: %s", got)
	}
}

// otherEdge runs another Caddy on the same Redis and storage. It returns the address
// of its admin endpoint.
func otherEdge(s *sitetest.Site, app map[string]any) string {
	s.T.Helper()
	address := "unix/" + s.Path("other")
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"listen": address, "config": map[string]any{"persist": false}},
		"storage": map[string]any{"module": "file_system", "root": s.Path("storage")},
		"apps":    map[string]any{"stockgate": app},
	})
	if err != nil {
		s.T.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.T.Fatal(err)
	}
	cmd := exec.Command(self, "run", "--config", s.File("other.json", string(config)))
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+s.T.TempDir())
	if err := cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s.Eventually("running", func() (string, bool) {
		r := sitetest.Run(s.T, "", "--address", address, "list", "show", "worse")
		return r.Errors, r.Status == 0
	})
	return address
}

// listState is the API's answer about a list.
type listState struct {
	Name, Source, Path, Error string
	Entries                   int64
}

func TestListCommands(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	path := s.File("bad.txt", "buyer:mallory\n")
	app["lists"] = map[string]any{"vips": redisSource, "bad": fileSource(path)}
	s.Load(app)
	s.Eventually("ready", func() (string, bool) {
		a := s.Admin("POST", "/stockgate/lists/vips/add", "[]")
		return a.Body, a.Status == 200
	})
	var many strings.Builder
	many.WriteString("\ufeff# members\r\n\r\n")
	for i := range 12_000 {
		fmt.Fprintf(&many, "phone:%d\r\n", 13_000_000_000+i)
	}
	lines := s.File("many.txt", many.String())
	wrong := s.File("wrong.txt", "buyer:x\n10.0.0.300\n")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"list", "add", "vips", "ann", "buyer:bob", "192.0.2.7"}, 0, "3 of 3 entries are new in vips\n"},
		{[]string{"list", "add", "vips", "ann", "ip:192.0.2.7/32", "buyer:eve"}, 0, "1 of 3 entries are new in vips\n"},
		{[]string{"list", "remove", "vips", "buyer:eve", "nobody"}, 0, "1 of 2 entries were removed from vips\n"},
		{[]string{"list", "show", "vips"}, 0, "vips has 3 entries, kept in redis\n"},
		{[]string{"list", "import", "vips", lines}, 0, "12000 of 12000 entries are new in vips\n"},
		{[]string{"list", "import", "vips", lines}, 0, "0 of 12000 entries are new in vips\n"},
		{[]string{"list", "show", "vips", "--json"}, 0, `{"name":"vips","source":"redis","entries":12003}` + "\n"},
		{[]string{"list", "show", "bad"}, 0, "bad has 1 entries, read from " + path},
		{[]string{"list", "import", "vips", wrong}, 1, "wrong.txt:2: "},
		{[]string{"list", "add", "bad", "x"}, 1, "the list bad is read from the file " + path + ": change the file\n"},
		{[]string{"list", "add", "nosuch", "x"}, 1, `there is no list "nosuch"; there are bad, vips` + "\n"},
		{[]string{"list", "show", "nosuch"}, 1, "there is no list"},
		{[]string{"list", "add", "vips", "10.0.0.300"}, 2, "entry 1: "},
		{[]string{"list", "add", "vips"}, 2, "it takes a name and at least one entry"},
		{[]string{"list", "import", "vips", s.Path("nosuch")}, 2, "no such file"},
		{[]string{"list", "empty", "vips"}, 2, `there is no command "empty"`},
	} {
		r := s.Run(c.args...)
		out := r.Out
		if c.status != 0 {
			out = r.Errors
		}
		if r.Status != c.status || !strings.Contains(out, c.says) {
			t.Errorf("%q: %d, want %d and %q\n%s%s", c.args, r.Status, c.status, c.says, r.Out, r.Errors)
		}
	}
	if r := sitetest.Run(t, "phone:1\n# none\n\nphone:2\n", "--address", s.AdminAddress(), "list", "import", "vips", "-"); r.Status != 0 || r.Out != "2 of 2 entries are new in vips\n" {
		t.Errorf("%+v", r)
	}
	s.OK("list", "remove", "vips", "phone:1", "phone:2")
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"vips/add", `["a"]`, 200}, {"vips/remove", `["a"]`, 200}, {"bad/add", `["a"]`, 409}, {"bad/remove", `["a"]`, 409}, {"nosuch/add", `["a"]`, 404},
		{"vips/add", ``, 400}, {"vips/add", `null`, 400}, {"vips/add", `{"a":1}`, 400}, {"vips/add", `[1]`, 400}, {"vips/add", `["a",""]`, 400},
		{"vips/add?x=1", `["a"]`, 400}, {"vips/add", "[" + strings.Repeat(`"a",`, 5000) + `"a"]`, 400}, {"vips/add", `["` + strings.Repeat("a", 15_520_000) + `"]`, 413},
	} {
		if a := s.Admin("POST", "/stockgate/lists/"+c.path, c.body); a.Status != c.status {
			t.Errorf("%s: %d %s, want %d", c.path, a.Status, a.Body, c.status)
		}
	}
	all := sitetest.Do[struct{ Lists []listState }](s, "GET", "/stockgate/lists", "").Lists
	if len(all) != 2 || all[0] != (listState{Name: "bad", Source: "file", Path: path, Entries: 1}) || all[1] != (listState{Name: "vips", Source: "redis", Entries: 12003}) {
		t.Errorf("%+v", all)
	}
	if entries := s.Logged("list entries added"); len(entries) == 0 || entries[len(entries)-1]["list"] != "vips" {
		t.Errorf("log: %v", entries)
	}
}

// A reload keeps the lists that both configurations have; a list that is no longer used
// ends.
func TestReloadKeepsLists(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	before := goleak.IgnoreCurrent()
	path := s.File("bad.txt", "buyer:mallory\n")
	app["lists"] = map[string]any{"bad": fileSource(path), "worse": redisSource}
	closeShop := useGate(s, map[string]any{"deny": []string{"bad", "worse"}, "other_items": "pass"})
	s.Load(app)
	following := func() []string { return loops("filters/list/file.go:", "lists.(*Watcher).watch", keeping) }
	var first []string
	s.Eventually("the lists and the keeper of items run", func() (string, bool) {
		first = following()
		return fmt.Sprintf("%v, %d keepers", first, itemKeepers()), len(first) == 3 && itemKeepers() == 1
	})
	s.Gate["max_in_flight"] = 17
	s.Load(app)
	if again := following(); !slices.Equal(first, again) {
		t.Errorf("after a reload: %v, before: %v", again, first)
	}
	app["lists"].(map[string]any)["more"] = fileSource(s.Path("nosuch.txt"))
	if err := s.TryLoad(app); err == nil || !strings.Contains(err.Error(), s.Path("nosuch.txt")) || !strings.Contains(err.Error(), "list more") {
		t.Errorf("a list without its file: %v", err)
	}
	delete(app["lists"].(map[string]any), "more")
	s.Gate["allow"] = []string{"more"}
	if err := s.TryLoad(app); err == nil || !strings.Contains(err.Error(), `there is no list "more"`) {
		t.Errorf("a gate with a list that is not there: %v", err)
	}
	if again := following(); !slices.Equal(first, again) {
		t.Errorf("after reloads that failed: %v, before: %v", again, first)
	}
	delete(s.Gate, "allow")
	s.Load(app)
	openToBidders(s)
	becomes(s, "sold", bid{buyer: "ann", ip: "198.51.100.1", skus: "plain"})
	becomes(s, "denied", bid{buyer: "mallory", ip: "198.51.100.1", skus: "plain"})
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	closeShop()
	if left := following(); len(left) != 0 {
		t.Errorf("left open: %v", left)
	}
	s.Eventually("all at an end", func() (string, bool) {
		// Caddy leaves the admin endpoint of a configuration open that it has refused; what keeps a lock of
		// its storage notices within 5 s that the lock is gone
		err := goleak.Find(before, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"), goleak.IgnoreAnyFunction("github.com/caddyserver/caddy/v2.replaceLocalAdminServer.func2"))
		return fmt.Sprint(err), err == nil
	})
}

// A list in Redis that cannot be read refuses every buyer; one from a file still works.
func TestListsWithoutRedis(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	app["lists"] = map[string]any{"bad": fileSource(s.File("bad.txt", "buyer:mallory\n")), "worse": redisSource}
	useGate(s, map[string]any{"deny": []string{"bad", "worse"}, "other_items": "pass"})
	s.Load(app)
	openToBidders(s)
	const home = "198.51.100.1"
	becomes(s, "sold", bid{buyer: "ann", ip: home, skus: "plain"})
	becomes(s, "passed", bid{buyer: "ann", ip: home, skus: "tea"})
	server.Stop()
	heard := sitetest.Silence(t)
	becomes(s, "unavailable", bid{buyer: "ann", ip: home, skus: "tea"})
	if got := bidFor(s, bid{buyer: "mallory", ip: home, skus: "tea"}); got != "denied" {
		t.Errorf("by a file: %s", got)
	}
	server.Restart()
	heard()
	becomes(s, "passed", bid{buyer: "ann", ip: home, skus: "tea"})
}

// An unlisted item passes without a reservation, also while Redis is away and after a start
// without it. A listed item never does.
func TestOtherItemsPass(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := openShop(t, app, map[string]any{"other_items": "pass"})
	openToBidders(s)
	buy := func(skus string) bid { return bid{buyer: "ann", skus: skus} }
	becomes(s, "sold", buy("plain"))
	check := func(when string, want map[string]string) {
		t.Helper()
		for skus, want := range want {
			if got := bidFor(s, buy(skus)); got != want {
				t.Errorf("%s, %s: %s, want %s", when, skus, got, want)
			}
		}
	}
	check("selling", map[string]string{
		"tea": "passed", "tea milk": "passed", "20002002": "passed", "plain": "sold", "plain 20002001": "sold",
		"tea plain": "unknown_item", "plain tea": "unknown_item",
		"PLAIN": "unknown_item", "020002001": "unknown_item", "20002001x": "unknown_item", "2.0002001e7": "unknown_item",
	})
	if m := s.Get("/metrics").Body; !strings.Contains(m, `stockgate_attempts_total{outcome="passed",reason="",sale=""}`) {
		t.Errorf("metrics: %s", m)
	}
	away := map[string]string{"tea": "passed", "plain": "unavailable", "PLAIN": "unavailable", "tea plain": "unavailable", "20002001": "unavailable"}
	server.Stop()
	sitetest.Silence(t)
	becomes(s, "unavailable", buy("tea plain")) // the last answer of Redis is too old
	check("redis is away", away)

	s.Load(nil)
	if left := itemKeepers(); left != 0 {
		t.Fatalf("%d keepers", left)
	}
	s.Load(app)
	check("started without redis", away)

	if err := os.RemoveAll(s.Path("storage/stockgate")); err != nil {
		t.Fatal(err)
	}
	s.Load(nil)
	if err := os.RemoveAll(s.Path("storage")); err != nil {
		t.Fatal(err)
	}
	s.Load(app)
	check("nothing was ever known", map[string]string{"tea": "unavailable", "plain": "unavailable"})
}

// A Redis that has lost its data lists nothing, yet items that were listed do not become
// unlisted.
func TestOtherItemsOfLostData(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := openShop(t, app, map[string]any{"other_items": "pass"})
	openToBidders(s)
	becomes(s, "sold", bid{buyer: "ann", skus: "plain"})
	becomes(s, "passed", bid{buyer: "ann", skus: "tea"})
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	becomes(s, "unavailable", bid{buyer: "ann", skus: "plain"})
	if got := bidFor(s, bid{buyer: "ann", skus: "tea"}); got != "passed" {
		t.Errorf("tea: %s", got)
	}
}

// A sale that this edge cannot read may list any item: nothing passes meanwhile.
func TestOtherItemsOfAnUnreadableSale(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := openShop(t, app, map[string]any{"other_items": "pass"})
	openToBidders(s)
	becomes(s, "passed", bid{buyer: "ann", skus: "tea"})
	c := server.Client()
	meta, err := c.Keys(t.Context(), "*:meta").Result()
	if err != nil || len(meta) != 1 {
		t.Fatal(meta, err)
	}
	if err := c.HSet(t.Context(), meta[0], "doc", `{"from":"the future"}`, "version", "99").Err(); err != nil {
		t.Fatal(err)
	}
	becomes(s, "unavailable", bid{buyer: "ann", skus: "tea"})
	if got := bidFor(s, bid{buyer: "bob", skus: "plain"}); got != "unavailable" {
		t.Errorf("an item of that sale: %s", got)
	}
}

// A denied buyer is refused whatever they have bought before: the order stands, and the shop
// does not get it again.
func TestDenyComesBeforeRepeats(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	app["lists"] = map[string]any{"bad": redisSource}
	closeShop := useGate(s, map[string]any{"deny": []string{"bad"}, "ref": []string{"{json.ref}"}, "idempotency": []string{"{json.key}"}})
	s.Load(app)
	openToBidders(s)
	const home = "198.51.100.1"
	bids := []bid{
		{buyer: "ann", ip: home, body: `{"items":[{"sku":"plain","n":1}],"ref":"order-1"}`},
		{buyer: "ann", ip: home, body: `{"items":[{"sku":"plain","n":1}],"key":"key-1"}`},
	}
	for range 2 { // the second time forwarded again, and answered again
		for _, b := range bids {
			becomes(s, "sold", b)
		}
	}
	s.OK("list", "add", "bad", "buyer:ann")
	for _, b := range bids {
		becomes(s, "denied", b)
	}
	closeShop() // else it is asked
	for _, b := range bids {
		if got := bidFor(s, b); got != "denied" {
			t.Errorf("%s: %s", b.body, got)
		}
	}
	if got := s.StockOf("plain"); got != "1000 998 0 0 2" {
		t.Errorf("stock %s", got)
	}
}

// loops are the goroutines of the process in which one of these functions or files runs, such as
// "lists.(*Watcher).watch": each with the number that it has as long as it runs.
func loops(functions ...string) (ids []string) {
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*n)
	}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stack, "/"+f) }) {
			id, _, _ := strings.Cut(stack, " [")
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// keeping is where a goroutine keeps the items of all sales.
const keeping = "unlisted.(*itemKeeper).start."

// itemKeepers returns how many edges keep the items of all sales.
func itemKeepers() int { return len(loops(keeping)) }
