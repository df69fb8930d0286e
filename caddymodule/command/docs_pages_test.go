package command_test

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// aboutHolds runs what lists holds.
func aboutHolds(d *doc) {
	w := d.site("double11")
	w.shopper.Hold("r1", "20002001", 1, time.Hour)
	w.shopper.Must(w.shopper.Doubt(d.Context(), "double11", "r1", "timeout"))
	d.all("caddy stockgate holds")
}

// runDashboard runs what the alerts name, and writes the report.
func runDashboard(d *doc) {
	aboutHolds(d)
	for _, command := range []string{"queue drain", "sale list"} {
		d.all("caddy stockgate " + command)
	}
	d.shows(d.line("report double11"))
}

func runCapacity(d *doc) {
	for _, c := range d.lines { // TestExamplesOfDocs in package capacity compares what they print
		d.run(c.line)
	}
}

func runAPI(d *doc) {
	w := d.site("double11")
	for i := range 3 {
		w.shopper.Hold(fmt.Sprint("r", i), "20002001", 1, time.Hour)
		w.shopper.Must(w.shopper.Doubt(d.Context(), "double11", fmt.Sprint("r", i), "timeout"))
	}
	w.shopper.HoldRef("with-a-ref", "SO-1001", "20002001")
	d.file("orders.csv", "reservation\nr0\nr1\n")
	d.env = []string{"KEY=a-key-of-the-shop-that-is-long-enough"}
	if out := d.run(d.line("/refs/").line, "http://10.0.0.1:8444", w.front); !strings.Contains(out, `"state":"confirmed"`) {
		d.Error(out)
	}
	d.shows(d.line("--confirm-from"))
	d.all("caddy stockgate holds")
	d.file("returns.csv", "ref,sku,quantity\nSO-1001,20002001,1\n")
	d.all("caddy stockgate returns")
}

func runShop(d *doc) {
	w := d.site("double11")
	for _, id := range []string{"r1", "r2"} {
		w.shopper.Hold(id, "20002001", 1, time.Hour)
	}
	w.shopper.Must(w.shopper.Doubt(d.Context(), "double11", "r2", "timeout"))
	d.env = []string{"KEY=a-key-of-the-shop-that-is-long-enough", "ID=r1"}
	if out := d.run(d.line("curl").line, "http://10.0.0.1:8444", w.front); !strings.Contains(out, `"state":"confirmed"`) {
		d.Error(out)
	}
	d.all("caddy stockgate holds")
}

// caddyfile is what the doctor is given.
const caddyfile = "http://shop.example.com {\n\t@order method POST\n\tstockgate_guard\n\tstockgate @order {\n\t\tbuyer {http.auth.user.id}\n\t\tline {json.sku}\n\t}\n}\n"

func runDoctor(d *doc) {
	w := d.site("double11")
	caughtUp(d.T, d.s, w.ledger)
	d.file("Caddyfile", "{\n\tstockgate {\n\t\tredis "+w.redis.Addr()+"\n\t}\n}\n"+caddyfile)
	file := filepath.Join(d.dir, "Caddyfile")
	c := d.line("doctor --config")
	if c.output == "" {
		d.run(c.line, "/etc/caddy/Caddyfile", file)
	} else { // the page's Redis has a weaker setting, which is the warning that it shows
		if err := w.redis.Client().ConfigSet(d.Context(), "appendfsync", "everysec").Err(); err != nil {
			d.Fatal(err)
		}
		out := d.run(c.line, "/etc/caddy/Caddyfile", file)
		for line := range strings.Lines(c.output) {
			line, _, _ = strings.Cut(strings.ReplaceAll(line, "/etc/caddy/Caddyfile", file), "…")
			if strings.HasPrefix(line, "no errors") { // memory is unbounded here, and more
				line = "no errors"
			}
			if !strings.Contains(shape(out), shape(line)) {
				d.Errorf("it does not say %s\n%s", line, out)
			}
		}
	}
	d.all("caddy stockgate holds")
}

func runUpgrade(d *doc) {
	runDoctor(d)
	for _, command := range []string{"doctor", "health", "journal status", "sale list"} {
		d.all("caddy stockgate " + command)
	}
}

func runTry(d *doc) {
	d.site("double11")
	d.file("order.http", "POST /api/order HTTP/1.1\nHost: shop.example.com\nContent-Type: application/json\nX-User-Id: u42\n\n"+`{"sku":"20002001","quantity":2}`+"\n")
	d.file("sold.http", "HTTP/1.1 200 OK\nContent-Type: application/json\n\n"+`{"code":0}`+"\n")
	d.shows(d.line("try --gate"))
}

func runJournal(d *doc) {
	d.site("double11")
	for _, c := range d.lines {
		if strings.Contains(c.line, "tail") && !strings.Contains(c.line, "--no-follow") || strings.Contains(c.line, " --follow") {
			d.follow(c.line, "--from 1001 ", "")
		}
	}
	d.all("caddy stockgate journal")
	d.all("caddy stockgate ledger")
}

// runMoveIn has the script's keys as the page has them: half of the stock is sold.
func runMoveIn(d *doc) {
	d.site("try")
	own := redistest.Start(d.T, redistest.Password("top secret"))
	c := own.Client()
	if err := c.Set(d.Context(), "seckill:stock:1001", 50, 0).Err(); err != nil {
		d.Fatal(err)
	}
	for i := range 50 {
		if err := c.SAdd(d.Context(), "seckill:order:1001", fmt.Sprint("user", i)).Err(); err != nil {
			d.Fatal(err)
		}
	}
	d.env = []string{"SHOP_REDIS=top%20secret"}
	d.fileOf("yaml", "double11.yaml", "reader:", ":", "10.0.0.5:6379", own.Addr())
	d.shows(d.line("--dry-run"))
	d.all("caddy stockgate sale")
}

func runQueue(d *doc) {
	w := d.site("double11")
	q := sitetest.Queue(1)
	if w.shopper.OrderOf("q1", "20002001", q) {
		d.Fatal("the first order waits")
	}
	d.shows(d.line("queue show double11"))
	for _, word := range []string{"queue pause", "queue resume", "queue drain", "sale pause", "sale close"} {
		d.run(d.line("caddy stockgate "+word).line, "SALE", "double11")
	}
	d.run(d.line("queue show SALE").line, "SALE", "double11")
}

func runPersons(d *doc) {
	w := d.site("double11")
	w.order(d.T, `{"sku":"20002001","order_no":"SO-1001"}`)
	if out := d.run(d.lines[0].line); !strings.Contains(out, "SO-1001") {
		d.Errorf("it shows\n%s", out)
	}
	d.all("caddy stockgate person")
}

func runReconcile(d *doc) {
	w := d.site("double11")
	w.order(d.T, `{"sku":"20002001","order_no":"SO-1001"}`)
	d.file("orders.csv", "order_no\nSO-1001\n")
	caughtUp(d.T, d.s, w.ledger)
	d.all("caddy stockgate reconcile")
}

// runGuarantees asks the witnesses of a sale in which nothing was oversold: each of them ends with status 0.
func runGuarantees(d *doc) {
	w := d.site("double11")
	w.order(d.T, `{"sku":"20002001","order_no":"SO-1001"}`)
	d.file("orders.csv", "ref,quantity\nSO-1001,1\n")
	caughtUp(d.T, d.s, w.ledger)
	d.all("caddy stockgate ")
}

// order buys at the gate.
func (w *docSite) order(t *testing.T, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.front+"/api/order", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User-Id", "u42")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("the order got %s", resp.Status)
	}
}

func runSales(d *doc) {
	w := d.site("double11")
	for _, c := range d.lines {
		switch planned := strings.Contains(c.line, " sale schedule "); {
		case planned && c.output != "":
			d.shows(c, "2027-", "2089-")
		case planned:
			d.run(c.line, "2027-", "2089-")
		}
	}
	w.shopper.Hold("r1", "20002001", 5, time.Hour)
	w.shopper.Hold("r2", "20002001", 4, time.Hour)
	w.shopper.Must(w.shopper.Doubt(d.Context(), "double11", "r2", "timeout"))
	d.shows(d.line("sale close double11 --export"))
}

func runScripts(d *doc) {
	w := d.site()
	_, port, err := net.SplitHostPort(w.redis.Addr())
	if err != nil {
		d.Fatal(err)
	}
	for _, c := range d.lines {
		if out := d.run(c.line, "redis-cli", "redis-cli -p "+port); strings.Contains(c.line, "SCRIPT LOAD") {
			if have, err := w.redis.Client().ScriptExists(d.Context(), strings.TrimSpace(out)).Result(); err != nil || !have[0] {
				d.Errorf("%s prints %s, which Redis does not have: %v", c.line, out, err)
			}
		}
	}
}

// runBypass sells past the gate, and takes what the shop has sold over: afterwards stock and shop agree.
func runBypass(d *doc) {
	d.T.Setenv("XDG_DATA_HOME", d.TempDir())
	w := d.site("double11")
	order := func(no string) int {
		return d.s.AskWith("http", "POST", "/api/order", `{"sku":"20002001","quantity":2,"order_no":"`+no+`"}`, map[string]string{"X-User-Id": no, "Content-Type": "application/json"}).Status
	}
	units := func() (sold int64) {
		orders, err := w.orders.Load().Orders(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		list := "ref,sku,quantity\n"
		for i := range orders {
			for _, l := range orders[i].Lines {
				sold += l.Quantity
				list += fmt.Sprintf("SO-%d,%s,%d\n", i+1, l.SKU, l.Quantity)
			}
		}
		d.file("orders.csv", list)
		return sold
	}
	orders := func(from, to int) {
		for no := from; no <= to; no++ {
			if status := order(fmt.Sprint("SO-", no)); status/100 != 2 {
				d.Errorf("order %d: %d", no, status)
			}
		}
	}
	orders(1, 2)
	d.run(d.line("--for 15m").line, "pay", "main")
	d.run(d.lines[1].line)
	orders(3, 7)
	d.run(d.line("sale pause").line)
	d.run(d.line("bypass off").line, "pay", "main")
	d.s.Eventually("noted", func() (string, bool) {
		shown := d.s.OK("sale", "show", "double11")
		return shown, strings.Contains(shown, "the shop sold without reservations")
	})
	sold := units()
	for _, c := range d.lines {
		switch {
		case !strings.Contains(c.line, "reconcile double11"):
		case strings.Contains(c.line, "--repair"):
			d.run(c.line)
		default: // differences are an exit status of 1
			d.done[c.line] = true
			if out, err := d.command(c.line).CombinedOutput(); err == nil || !strings.Contains(string(out), "with the order SO-7, and no reservation has them") {
				d.Errorf("%s: %v\n%s", c.line, err, out)
			}
		}
	}
	d.run(d.line("sale open").line)
	orders(8, 8)
	b := sitetest.Do[sitetest.SaleStock](d.s, "GET", "/stockgate/sales/double11", "")
	if left := b.Cell("20002001", ""); sold != 14 || left != "90 84 0 0 6" {
		d.Errorf("the shop has sold %d and 2 units, and the stock is %s", sold, left)
	}
}
