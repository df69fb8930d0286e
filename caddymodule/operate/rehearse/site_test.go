package rehearse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/rehearse"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/token"
)

// rehearsed is a site with a real shop.
type rehearsed struct {
	*sitetest.Site
	shop        *shop.Shop
	front, back string // addresses
	request     string // file of an order
}

// rehearsal opens a site whose gate has these options, and a shop that verifies or does not.
func rehearsal(t *testing.T, gate string, verifies bool) *rehearsed {
	t.Helper()
	r := new(rehearsed)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.shop.ServeHTTP(w, req) }))
	t.Cleanup(behind.Close)
	r.back = behind.Listener.Addr().String()
	r.Site = sitetest.OpenCaddyfile(t, sitetest.OrderMatcher+"stockgate_guard\nstockgate_status\nstockgate @order main {\nbuyer {header.X-User-Id}\nline {json.sku} {json.quantity}\nmax_in_flight 4096\n"+gate+"\n}\nreverse_proxy "+r.back)
	r.front = r.Front()
	var o shop.Options
	if verifies {
		keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: "http://" + r.front + "/.well-known/jwks.json", Timeout: sitetest.Patience})
		if err != nil {
			t.Fatal(err)
		}
		if o.Verifier, err = token.NewVerifier(token.Options{Audience: app.DefaultAudience, Remote: keys}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.shop, err = shop.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.shop.Close() })
	r.request = r.File("order.http", "POST /api/order HTTP/1.1\nHost: "+r.front+"\nContent-Type: application/json\nX-User-Id: {{buyer}}\n\n"+`{"sku":"few","quantity":1}`+"\n")
	return r
}

// rehearse runs the command with patience for a slow machine.
func (r *rehearsed) rehearse(args ...string) sitetest.Ran {
	r.T.Helper()
	return sitetest.Run(r.T, "", append([]string{"rehearse", "--address", r.AdminAddress(), "--sale", "double11", "--settle", "2m"}, args...)...)
}

// crowd are the arguments of a crowd that orders.
func (r *rehearsed) crowd(args ...string) []string {
	return append([]string{"--host", "http://" + r.front, r.request, "--buyers", "40", "--timeout", "2m"}, args...)
}

func (r *rehearsed) listed() string { return "http://" + r.back + "/orders" }

// result reads what --json printed.
func result(t *testing.T, ran sitetest.Ran) (out struct {
	rehearse.Result
	states map[string]string
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(ran.Out), &out.Result); err != nil {
		t.Fatalf("%v in %+v", err, ran)
	}
	out.states = map[string]string{}
	for _, p := range out.Promises {
		out.states[p.Name] = p.State
	}
	return out
}

func TestRehearsalPasses(t *testing.T) {
	r := rehearsal(t, "", true)
	report := r.Path("report.html")
	ran := r.rehearse(r.crowd("--orders", r.listed(), "--double", "20%", "--bots", "5%", "--seed", "3", "--arrive", "poisson", "--over", "300ms",
		"--require", "sold=3", "--require", "held=0", "--require", "errors<1%", "--require", "p99<2m", "--report", report)...)
	if ran.Status != 0 {
		t.Fatalf("%+v", ran)
	}
	for _, says := range []string{
		"  sold                         3  of 215 units, in 3 orders\n", "promises, by the books and orders\n  kept       no oversell\n  kept       no unit missing\n  kept       every yes is an order and a sold unit\n" +
			"  kept       limits hold\n  kept       journal and stock agree\n", "  met        sold=3: 3\n", "wrote " + report,
	} {
		if !strings.Contains(ran.Out, says) {
			t.Errorf("it does not say %q:\n%s", says, ran.Out)
		}
	}
	if html, err := os.ReadFile(report); err != nil || !strings.Contains(string(html), "double11") || !strings.HasPrefix(strings.ToLower(string(html)), "<!doctype html>") {
		t.Errorf("the report: %v", err)
	}

	// what another load test did is judged the same, and its answers too
	three, err := r.shop.Orders(t.Context())
	if err != nil || len(three) != 3 {
		t.Fatalf("%v, %v", three, err)
	}
	answers := ""
	list := "reservation\n"
	for _, o := range three {
		answers += fmt.Sprintf("{\"status\":201,\"reservation\":%q}\n", o.Reservation)
		list += o.Reservation + "\n"
	}
	file, csv := r.File("answers.jsonl", answers), r.File("orders.csv", list)
	for _, args := range [][]string{{"--orders", r.listed()}, {"--orders", csv, "--answers", file}, {"--answers", file}, {}} {
		if ran := r.rehearse(append(args, "--judge-only", "--require", "sold=3")...); ran.Status != 0 {
			t.Errorf("%q: %+v", args, ran)
		}
	}
	lie := r.File("lie.jsonl", answers+`{"status":201,"reservation":"no-such-reservation"}`)
	if ran := r.rehearse("--judge-only", "--answers", lie, "--orders", csv); ran.Status != 1 || !strings.Contains(ran.Errors, "not passed: broken: every yes is an order and a sold unit\n") {
		t.Errorf("%+v", ran)
	}
	missing := r.File("missing.csv", "reservation\n"+three[0].Reservation+"\n")
	if ran := r.rehearse("--judge-only", "--orders", missing); ran.Status != 1 || !strings.Contains(ran.Out, "2 units of few are confirmed without an order") {
		t.Errorf("%+v", ran)
	}
}

// The JSON has these fields, which scripts read.
func TestRehearsalAsJSON(t *testing.T) {
	r := rehearsal(t, "", true)
	ran := r.rehearse(r.crowd("--json", "--leave", "25%", "--require", "sold<=3")...)
	out := result(t, ran)
	if ran.Status != 0 || !out.Passed || out.Judged != "books" || out.Units.Sold > 3 || out.Buyers != 40 || out.Seed != 1 || out.Arrive != "spike" || out.Orders != nil ||
		out.ScheduleKept == nil || out.Tally.Late == nil || out.Tally.Failed[stampede.Left] == 0 || len(out.Requirements) != 1 || !out.Requirements[0].Met {
		t.Errorf("%+v %s", ran.Status, ran.Out)
	}
	if len(out.Notes) == 0 || !strings.Contains(out.Notes[0], "only the gate's books were judged") {
		t.Errorf("%q", out.Notes)
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(ran.Out), &raw); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"sale", "passed", "judged", "hosts", "arrive", "buyers", "seed", "schedule_kept", "tally", "units", "oversold", "promises", "requirements", "notes"} {
		if _, ok := raw[field]; !ok {
			t.Errorf("there is no %s in %s", field, ran.Out)
		}
		delete(raw, field)
	}
	if len(raw) > 0 {
		t.Errorf("there is more: %v", raw)
	}
}

// A shop that takes an order and answers 500 sells its units twice behind a gate that is told
// that 500 means no.
func TestRehearsalFindsAShopThatSellsTwice(t *testing.T) {
	r := rehearsal(t, "release 500", false)
	if err := r.shop.SetMisbehaviour("500-after:0.5"); err != nil {
		t.Fatal(err)
	}
	ran := r.rehearse(r.crowd("--json", "--orders", r.listed())...)
	out := result(t, ran)
	if ran.Status != 1 || out.Passed || out.states[stampede.NoOversell] != stampede.Broken || !strings.Contains(ran.Errors, "not passed: broken: no oversell") {
		t.Errorf("%+v", ran)
	}
	if !strings.Contains(ran.Out, "which is released: its units may be sold again") {
		t.Errorf("%s", ran.Out)
	}
}

func TestRehearsalExitStatus(t *testing.T) {
	r := rehearsal(t, "", true)
	asked := func() int64 { return r.shop.Counts().Requests }
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{r.crowd("--require", "sold>=4"), 1, "not passed: sold>=4 is not met: 3\n"},
		{r.crowd("--require", "max<1ns", "--require", "p50<10m"), 1, "not passed: max<1ns is not met: "},
		{[]string{"--host", "shop.test", r.request, "--buyers", "1"}, 2, "which no --host names: there are https://shop.test\n"},
		{[]string{r.request, "--buyers", "1"}, 2, "--host"},
		{r.crowd("--double", "5x"), 2, `--double "5x": write a share, such as 5%`},
		{r.crowd("--double", "60%", "--leave", "0.5"), 2, "more than 100 %"},
		{r.crowd("--buyers", "0"), 2, "--buyers 0: give 1 to 100000"},
		{r.crowd("--over", "-1s"), 2, "--over must be more than 0"},
		{r.crowd("--sale", "nosuch"), 2, "no such sale: nosuch"},
		{r.crowd("--address", "unix/"+r.Path("nothing.sock")), 3, "is it running?"},
	} {
		before := asked()
		ran := r.rehearse(c.args...)
		if ran.Status != c.status || !strings.Contains(ran.Errors, c.says) {
			t.Errorf("%q: %d\n%s%s", c.args, ran.Status, ran.Out, ran.Errors)
		}
		if c.status > 1 && asked() != before {
			t.Errorf("%q: something was sent", c.args)
		}
	}
}

// A redirect to another host is not followed, and the result says so.
func TestRehearsalFollowsNoRedirect(t *testing.T) {
	elsewhere := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, "stockgate_guard\n@order path /api/order\nstockgate @order main {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\nredir /other http://"+elsewhere.Addr()+"/x 307")
	r := &rehearsed{Site: s, front: s.Front()}
	r.request = r.File("order.http", "POST /other HTTP/1.1\nHost: "+r.front+"\n\n{}\n")
	ran := r.rehearse(r.crowd("--buyers", "5")...)
	if ran.Status != 0 || !strings.Contains(ran.Out, "note: 5 answers redirect to http://"+elsewhere.Addr()+", which no --host names: refused, no request was sent there\n") {
		t.Errorf("%+v", ran)
	}
	if got := elsewhere.Take(); len(got) != 0 {
		t.Errorf("%d requests went there", len(got))
	}
}

// Buyers who find all units held enter the waiting list by the request of their order, and order what is offered.
func TestRehearsalWaits(t *testing.T) {
	r := rehearsal(t, "}\n@waitlist path /waitlist /waitlist/*\nstockgate_waitlist @waitlist {\nbuyer {header.X-User-Id}\nline {json.sku} {json.quantity}", false)
	sitetest.Do[any](r.Site, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {offer: 30s}\n")
	r.Refresh()
	if err := r.shop.SetMisbehaviour("delay=500ms,status=402:0.5"); err != nil {
		t.Fatal(err)
	}
	ran := r.rehearse(r.crowd("--orders", r.listed(), "--waitlist", "/waitlist", "--enter", "90%", "--patience", "8s", "--json")...)
	if ran.Status != 0 {
		t.Fatalf("%+v", ran)
	}
	got := result(t, ran)
	w := got.Tally.Waited
	if w == nil || w.Entered == 0 || got.Tally.Refused["all_held"]+got.Tally.Refused["not_your_turn"] < w.Entered || w.Ordered > w.Offered {
		t.Errorf("%+v, %+v", w, got.Tally)
	}
	for _, args := range [][]string{{"--enter", "50%"}, {"--patience", "5s"}, {"--waitlist", "waitlist"}, {"--waitlist", "/waitlist", "--enter", "0%"}, {"--waitlist", "/waitlist", "--enter", "2"}} {
		if ran := r.rehearse(r.crowd(args...)...); ran.Status != 2 {
			t.Errorf("%q: %+v", args, ran)
		}
	}
}
