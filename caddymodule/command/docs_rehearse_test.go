package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// byChance is a line of the result that counts the refusals of one reason, or says that the
// machine was slow.
var byChance = regexp.MustCompile(`(?m)^( {4}\S|note: this machine did not keep).*\n`)

// runRehearse rehearses with fewer buyers, in less time, and with patience for a slow machine.
// The result has the lines of the page.
func runRehearse(d *doc) {
	w := d.site("rehearsal")
	d.fileOf("http", "order.http", "shop.test", strings.TrimPrefix(w.front, "http://"))
	d.run(d.line("stockgate try").line)

	rows := "buyer\n"
	for i := range 200 {
		rows += fmt.Sprintf("user%d\n", i)
	}
	d.file("users.csv", rows)
	here := []string{
		"--host shop.test", "--timeout 2m --settle 2m --host " + w.front, "http://10.0.0.7:9000", w.shop, "--buyers 5000", "--buyers 200",
		"--over 30s", "--over 1s", "p99<300ms", "p99<2m", "sold>=100", "sold>=90",
	}
	d.run(d.line("--data users.csv").line, here...)
	answers, orders := "", "reservation\n"
	for _, o := range w.list(d) {
		answers += fmt.Sprintf("{\"status\":201,\"reservation\":%q}\n", o.Reservation)
		orders += o.Reservation + "\n"
	}
	d.file("answers.jsonl", answers)
	d.file("orders.csv", orders)
	d.run(d.line("--judge-only").line)

	w.anotherShop(d.T)
	sitetest.Do[any](d.s, "POST", "/stockgate/sales/rehearsal/close", "")
	d.open("double11")
	out := d.run(d.line("--buyers 5000").line, here...)
	if want := d.blockOf("text"); shape(byChance.ReplaceAllString(out, "")) != shape(byChance.ReplaceAllString(want, "")) {
		d.Errorf("it prints\n%s\nthe page has\n%s", out, want)
	}
}

// list are the orders that the shop has.
func (w *docSite) list(d *doc) (all []struct{ Reservation string }) {
	d.Helper()
	resp, err := http.Get(w.shop + "/orders")
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil || len(all) == 0 {
		d.Fatalf("%d orders: %v", len(all), err)
	}
	return all
}
