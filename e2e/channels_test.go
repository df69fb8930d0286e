package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// till is an edge with the Caddyfile of docs/sales.md, beside the edge of the site.
type till struct {
	*edge
	api string
}

// channels is what docs/sales.md says about several channels.
func channels(t *testing.T) string {
	t.Helper()
	_, text, found := strings.Cut(pageOf(t, "sales.md"), "## Several channels\n")
	if !found {
		t.Fatal("the page has nothing about channels")
	}
	return text
}

func startTill(t *testing.T, web site) (*edge, *till) {
	t.Helper()
	web.redis = redisAt(redistest.Start(t).Addr())
	first, e := newEdge(t, ""), newEdge(t, "")
	e.storage = first.storage
	first.start(web)
	api := freeAddr(t)
	text := changed(t, blockOf(t, channels(t), "caddyfile"), "redis 10.0.7.20:6379", "redis "+web.redis,
		"bind 10.0.7.11", "bind 127.0.0.1", "10.0.7.11:8445", e.addr, "10.0.7.11:8444", api)
	text = fmt.Sprintf("{\n\tadmin unix/%s\n\tstorage file_system %s\n\tpersist_config off\n", e.admin, e.storage) + strings.TrimPrefix(text, "{\n")
	file := filepath.Join(e.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e.env = []string{"TILL_SECRET=" + loginSecret, "STOCKGATE_API_KEY=" + apiKey}
	e.startFile(file)
	return first, &till{e, "http://" + api}
}

// untilHeard waits until the till's edge has heard of a sale, by an order of more units than there are.
func (s *till) untilHeard(sku string) {
	s.t.Helper()
	eventually(s.t, "the till sells "+sku, func() bool {
		o := signedIn(one("", sku, 9999, ""), loginSecret, `{"sub":"till-0"}`)
		o.path = "/sell"
		reason := s.buy(o).reason
		return reason == "sold_out" || reason == "limit_reached"
	})
}

// receipt is what the till asks for a receipt of one unit.
func receipt(path, number, sku string) order {
	o := signed(number, sku)
	o.path = path
	return o
}

// settle asks the API.
func (s *till) settle(path, body string) int {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.api+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}}
	status, _ := send(s.t, r)
	return status
}

// A till sells beside the site from the same stock: of the last unit one of them has it, and the
// buyers' limits do not count the till's receipts.
func TestTillBesideTheSite(t *testing.T) {
	t.Parallel()
	shop := new(recorder)
	web, till := startTill(t, site{shop: serve(t, shop)})
	web.sellLimited("flash", `  - {sku: "7", stock: 5}`, `  - {per: buyer, every: sale, max: 1, count: units}`)
	till.untilHeard("7")

	first := till.mustBuy(receipt("/sell", "till-3-000123", "7"), 201, "")
	till.mustBuy(receipt("/sell", "till-3-000124", "7"), 201, "")
	if again := till.mustBuy(receipt("/sell", "till-3-000123", "7"), 201, ""); again.reservation != first.reservation {
		t.Errorf("the receipt was sold as %s and as %s", first.reservation, again.reservation)
	}
	web.mustBuy(one("ann", "7", 1, ""), 201, "")
	web.mustBuy(one("ann", "7", 1, ""), 403, "limit_reached")
	web.expect("flash", 2, 0, 0, 3)

	held := till.mustBuy(receipt("/hold", "till-3-000125", "7"), 202, "")
	other := till.mustBuy(receipt("/hold", "till-3-000126", "7"), 202, "")
	web.expect("flash", 0, 2, 0, 3)
	web.mustBuy(one("bob", "7", 1, ""), 409, "all_held")
	if status := till.settle("/reservations/"+held.reservation+"/confirm", ""); status != 200 {
		t.Errorf("confirm: %d", status)
	}
	if status := till.settle("/reservations/"+other.reservation+"/release", ""); status != 200 {
		t.Errorf("release: %d", status)
	}
	web.expect("flash", 1, 0, 0, 4)
	if status := till.settle("/refs/till-3-000123/return", `{"id":"return-1"}`); status != 200 {
		t.Errorf("return: %d", status)
	}
	web.expect("flash", 2, 0, 0, 3)

	stranger := receipt("/sell", "till-9", "7")
	stranger.header.Set("Authorization", "Bearer forged")
	till.mustBuy(stranger, 401, "no_buyer")
	till.mustBuy(receipt("/elsewhere", "till-3-000127", "7"), 404, "")
	if n := shop.orders(); n != 1 {
		t.Errorf("the shop of the site got %d orders", n)
	}
}

func TestTillAndTheLastUnit(t *testing.T) {
	t.Parallel()
	web, till := startTill(t, site{shop: serve(t, new(recorder))})
	items := ""
	for n := range 20 {
		items += fmt.Sprintf("  - {sku: \"last-%d\", stock: 1}\n", n)
	}
	web.sell("flash", items)
	till.untilHeard("last-0")
	for n := range 20 {
		sku := fmt.Sprint("last-", n)
		atTheSite, atTheTill := web.goBuy(one("ann", sku, 1, "")), till.goBuy(receipt("/sell", fmt.Sprint("till-3-", n), sku))
		a, b := await(t, "the site's answer", atTheSite), await(t, "the till's answer", atTheTill)
		if a.status+b.status != 201+409 {
			t.Errorf("%s: the site says %v, the till %v", sku, a, b)
		}
	}
	for _, c := range web.stock("flash").Items {
		if c.Available != 0 || c.Held != 0 || c.InDoubt != 0 || c.Confirmed != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// A channel has a region of its own, and units are moved by the page's commands.
func TestRegionsOfChannels(t *testing.T) {
	t.Parallel()
	page := channels(t)
	web := startEdge(t, site{shop: serve(t, new(recorder)), source: "buyer {header.X-User-Id}\nregion site\nline {json.sku} {json.quantity}"})
	file := changed(t, blockOf(t, page, "yaml"), "id: double11\n", "", "2027-11-11T00:00:00+08:00", "2020-01-01T00:00:00Z", "2027-11-12T00:00:00+08:00", "2090-01-01T00:00:00Z")
	web.apply("double11", file)
	web.must("POST", "sales/double11/open", "", nil)
	web.untilSelling("double11")
	_, moves, _ := strings.Cut(page, "### A stock of its own")
	for line := range strings.Lines(strings.Repeat(blockOf(t, moves, "console"), 2)) { // the second time nothing moves
		args := append([]string{"stockgate", "--address", "unix/" + web.admin}, strings.Fields(line)[3:]...)
		if out, err := caddyCommand(args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", line, err, out)
		}
	}
	web.mustBuy(one("ann", "20002001", 85, ""), 201, "")
	web.mustBuy(one("bob", "20002001", 1, ""), 409, "sold_out")
	for _, c := range web.stock("double11").Items {
		if c.Region == "market" && c.Available != 15 || c.Region == "site" && c.Available != 0 {
			t.Errorf("%+v", c)
		}
	}
}
