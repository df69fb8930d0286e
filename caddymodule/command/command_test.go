package command_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/mysql"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/postgres"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/sqlite"
	_ "github.com/stockgate/stockgate/caddymodule/mirror"
	_ "github.com/stockgate/stockgate/caddymodule/movein"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func init() { sitetest.BeCaddy() }

func TestCommandsRunASale(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	file := s.File("sale.yaml", sitetest.SaleFile)
	shows := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("it does not say %q:\n%s", w, out)
			}
		}
	}
	shows(s.OK("sale", "apply", file, "--dry-run"), "new item plain: stock 100", "dry run: nothing was changed")
	shows(s.OK("sale", "list"), "(none)")
	shows(s.OK("sale", "apply", file), "new sale double11")
	shows(s.OK("sale", "apply", file), "no change")
	shows(s.OK("sale", "open", "double11"), "double11 is open\n")
	shows(s.OK("sale", "list"), "SALE      STATUS  STARTS                     ENDS                       BALANCED\n"+
		"double11  open    2020-11-10 16:00:00 +0000  2090-11-11 16:00:00 +0000  yes\n")

	shows(s.OK("stock", "add", "double11", "plain", "50", "--id", "one"), "plain has 150 units after +50 (id one)\n")
	shows(s.OK("stock", "add", "double11", "plain", "50", "--id", "one"), "plain has 150 units after +50 (id one)\n")
	shows(s.OK("stock", "add", "double11", "plain", "-5"), "plain has 145 units after -5 (id ")
	shows(s.OK("stock", "add", "--region", "beijing", "double11", "two", "--", "-5"), "two in beijing has 35 units after -5 (id ")
	shows(s.OK("stock", "add", "double11", "a/b%c?d#e", "1"), "a/b%c?d#e has 6 units")
	shows(s.OK("stock", "add", "double11", "..", "-1", "--id=-1"), ".. has 6 units after -1 (id -1)")
	if a, b := s.OK("stock", "add", "double11", "plain", "1"), s.OK("stock", "add", "double11", "plain", "1"); a == b {
		t.Errorf("two additions have one id: %s", a)
	}
	shows(s.OK("stock", "add", "--help"), "Adds units to an item at once")

	p := sitetest.NewShopper(t, server)
	for _, id := range []string{"r1", "r2", "r3"} {
		p.Hold(id, "plain", 2, time.Hour)
	}
	p.Must(p.Doubt(t.Context(), "double11", "r1", "timeout"))
	p.Must(p.Doubt(t.Context(), "double11", "r2", "timeout"))
	shows(s.OK("sale", "show", "double11"), "double11 is open, from 2020-11-10 16:00:00 +0000 to 2090", "in doubt since ",
		"SKU        REGION    STOCK  AVAILABLE  HELD  IN DOUBT  CONFIRMED\n",
		"plain      -         147    141        2     4         0\n",
		"all        -         257    251        2     4         0\n")
	shows(s.OK("holds", "double11"), "RESERVATION  SALE      STATE     AGE", "r1           double11  in_doubt  ", "2×plain", "timeout")
	shows(s.OK("holds", "double11", "--state", "held"), "r3           double11  held")
	shows(s.OK("holds", "double11", "--limit=1"), "there are more")
	shows(s.OK("reservation", "show", "r1"), "sale            double11\n", "state           in_doubt\n")
	shows(s.OK("reservation", "confirm", "r1"), "r1 is confirmed\n")
	shows(s.OK("reservation", "release", "r2", "--force"), "r2 is released\n")
	shows(s.OK("sale", "pause", "double11"), "double11 is paused\n")
	shows(s.OK("sale", "close", "double11"), "double11 is closed\n")

	if entries := s.Logged("sale status set"); len(entries) != 3 || entries[0]["by"] != "ann@unix" {
		t.Errorf("%v", entries)
	}
}

// With --json the API's answer is all that is printed, byte for byte.
func TestCommandsPrintTheAnswer(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	file := s.File("sale.json", `{"id":"double11","starts_at":"2020-01-01T00:00:00Z","ends_at":"2090-01-01T00:00:00Z","items":[{"sku":"plain","stock":3}]}`)
	for _, c := range []struct {
		args []string
		into any
	}{
		{[]string{"sale", "apply", file}, new(reservation.Applied)},
		{[]string{"sale", "open", "double11"}, new(sitetest.SaleStock)},
		{[]string{"sale", "list"}, new(adminapi.SaleList)},
		{[]string{"sale", "show", "double11"}, new(sitetest.SaleStock)},
		{[]string{"holds", "double11"}, new(adminapi.HoldList)},
		{[]string{"stock", "add", "double11", "plain", "1"}, new(map[string]any)},
	} {
		out := s.OK(append(c.args, "--json")...)
		dec := json.NewDecoder(strings.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(c.into); err != nil {
			t.Errorf("%q: %v in %s", c.args, err, out)
		}
	}
	if out, want := s.OK("sale", "show", "double11", "--json"), s.Admin("GET", "/stockgate/sales/double11", "").Body; out != want {
		t.Errorf("%s, not %s", out, want)
	}
	sitetest.NewShopper(t, server).Hold("r", "plain", 1, time.Hour)
	var r reservation.Record
	if err := json.Unmarshal([]byte(s.OK("reservation", "show", "r", "--json")), &r); err != nil || r.State != record.Held {
		t.Errorf("%+v %v", r, err)
	}
	if r := s.Run("sale", "show", "nosuch", "--json"); r.Status != 1 || r.Out != "{\"error\":\"no such sale: nosuch\"}\n" || r.Errors == "" {
		t.Errorf("%+v", r)
	}
}

func TestCommandsExitStatus(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	sitetest.NewShopper(t, server).Hold("held", "plain", 1, time.Hour)
	short := s.File("short.yaml", strings.Replace(sitetest.SaleFile, "stock: 100", "stock: 0", 1))
	broken := s.File("broken.yaml", "id: UPPER\nstarts_at: tomorrow\n")
	oneMistake := s.File("one.yaml", sitetest.SaleFile+"status: open\n")
	for _, c := range []struct {
		args   []string
		status int
		says   string // in the one line on stderr
	}{
		{[]string{"sale", "open", "nosuch"}, 1, "caddy stockgate sale open: no such sale: nosuch\n"},
		{[]string{"sale", "forget-shadow", "nosuch"}, 1, "caddy stockgate sale forget-shadow: no such sale: nosuch\n"},
		{[]string{"sale", "apply", short}, 1, "only 99 are available"},
		{[]string{"sale", "apply", oneMistake}, 1, "one.yaml: line 11: status: "},
		{[]string{"stock", "add", "double11", "nope", "1"}, 1, "has no item nope"},
		{[]string{"reservation", "release", "held"}, 1, "may still sell this reservation"},
		{[]string{"reservation", "show", "nosuch"}, 1, "no such reservation: nosuch"},

		{nil, 2, "which command? There are sale, stock, queue, waitlist, holds, reservation"},
		{[]string{"sell"}, 2, `there is no command "sell"`},
		{[]string{"sal"}, 2, "did you mean `caddy stockgate sale`?"},
		{[]string{"open", "double11"}, 2, "did you mean `caddy stockgate sale open`?"},
		{[]string{"sale", "aply", "x"}, 2, "did you mean `caddy stockgate sale apply`?"},
		{[]string{"sale"}, 2, "which command?"},
		{[]string{"sale", "destroy", "double11"}, 2, `there is no command "destroy"`},
		{[]string{"sale", "open"}, 2, "it takes one argument: caddy stockgate sale open <sale>\n"},
		{[]string{"sale", "open", "a", "b"}, 2, "it takes one argument"},
		{[]string{"sale", "list", "x"}, 2, "it takes no arguments"},
		{[]string{"sale", "list", "--all"}, 2, "unknown flag: --all"},
		{[]string{"sale", "show", "No Id"}, 2, `"No Id" is no id of a sale`},
		{[]string{"sale", "apply", s.Path("missing")}, 2, "no such file"},
		{[]string{"stock", "add", "double11", "plain"}, 2, "it takes 3 arguments"},
		{[]string{"stock", "add", "double11", "plain", "5", "-5"}, 2, "it takes 3 arguments"},
		{[]string{"stock", "add", "double11", "plain", "many"}, 2, `"many" is no number of units`},
		{[]string{"stock", "add", "double11", "plain", "0"}, 2, `"0" is no number of units`},
		{[]string{"stock", "add", "double11", "plain", "5", "--regoin", "x"}, 2, "unknown flag: --regoin"},
		{[]string{"stock", "add", "double11", "plain", "5", "--region"}, 2, "flag needs an argument"},
		{[]string{"stock", "add", "double11", "two", "5"}, 2, "name one of beijing, shanghai"},
		{[]string{"holds", "double11", "--state", "confirmed"}, 2, "state must be"},
		{[]string{"holds", "double11", "--limit", "many"}, 2, "invalid argument"},
		{[]string{"holds", "double11", "--address", "a:1-9"}, 2, "no address of an admin endpoint"},

		{[]string{"sale", "list", "--address", "unix/" + s.Path("nothing.sock")}, 3, "is it running?"},
		{[]string{"sale", "list", "--address", "unix/" + s.Socket("http")}, 3, "is not a Caddy with stockgate"},
	} {
		r := s.Run(c.args...)
		if r.Status != c.status || r.Out != "" {
			t.Errorf("%q: %d, not %d\n%s%s", c.args, r.Status, c.status, r.Out, r.Errors)
		}
		if !strings.HasPrefix(r.Errors, "caddy stockgate") || strings.Count(r.Errors, "\n") != 1 || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%q: %q does not say %q in one line", c.args, r.Errors, c.says)
		}
	}
	if r := s.Run("sale", "apply", broken); r.Status != 1 || !strings.Contains(r.Errors, "broken.yaml has 4 mistakes:\nline 1: id: ") {
		t.Errorf("%d %s", r.Status, r.Errors)
	}

	if r := sitetest.Run(t, "", "holds", "double11", "--config", s.Path("missing")); r.Status != 2 || r.Out != "" || !strings.Contains(r.Errors, "no such file") || strings.Count(r.Errors, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	server.Stop()
	r := s.Run("stock", "add", "double11", "plain", "1")
	if r.Status != 3 || !regexp.MustCompile(`^caddy stockgate stock add: redis does not answer.*\(repeat it with --id [0-9a-f-]{36}: it is made once\)\n$`).MatchString(r.Errors) {
		t.Errorf("%d %q", r.Status, r.Errors)
	}
	s.Load(nil)
	if r := s.Run("sale", "list"); r.Status != 3 || !strings.Contains(r.Errors, "no stockgate app is running") {
		t.Errorf("%d %q", r.Status, r.Errors)
	}
}

// The endpoint is found in a configuration, and a file may come from a pipe.
func TestCommandsFindCaddy(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	config := s.File("Caddyfile", "{\n\tadmin "+s.AdminAddress()+"|0200\n}\n")
	if r := sitetest.Run(t, sitetest.SaleFile, "sale", "apply", "-", "--config", config); r.Status != 0 {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{
		{"sale", "open", "double11", "-c", config, "-a", "caddyfile"},
		{"stock", "add", "-c", config, "double11", "plain", "-1"},
		{"--config=" + config, "stock", "add", "double11", "plain", "-1"},
	} {
		if r := sitetest.Run(t, "", args...); r.Status != 0 || r.Errors != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := sitetest.Run(t, "", "sale", "list", "-c", s.File("broken", "example.com {\n")); r.Status != 2 || !strings.Contains(r.Errors, "cannot be adapted") {
		t.Errorf("%+v", r)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.Cell("plain", "") != "98 98 0 0 0" {
		t.Errorf("%+v", b)
	}
}
