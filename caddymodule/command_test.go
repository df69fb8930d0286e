package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/stockgate/stockgate/reservation"
)

// beCaddy makes this test binary the caddy command: what is tested is what a shell
// gets, with the exit status.
const beCaddy = "STOCKGATE_TEST_BE_CADDY"

func init() {
	if os.Getenv(beCaddy) != "" {
		caddycmd.Main()
		os.Exit(0)
	}
}

// ran is what a command left behind.
type ran struct {
	status      int
	out, errors string
}

// run runs caddy stockgate with these arguments.
func run(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"stockgate"}, args...)...)
	cmd.Env = append(os.Environ(), beCaddy+"=1", "GORACE=atexit_sleep_ms=0", "SUDO_USER=ann", "TZ=UTC", "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// run runs a command against the site's Caddy.
func (s *site) run(args ...string) ran {
	s.t.Helper()
	return run(s.t, "", append([]string{"--address", s.adminAddress()}, args...)...)
}

// ok runs a command that must be done without a word on stderr.
func (s *site) ok(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.status != 0 || r.errors != "" {
		s.t.Fatalf("%q: %d\n%s%s", args, r.status, r.out, r.errors)
	}
	return r.out
}

func (s *site) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func TestCommandsRunASale(t *testing.T) {
	server, app := realRedis(t)
	s := openSite(t, app)
	file := s.file("sale.yaml", saleFile)
	shows := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("it does not say %q:\n%s", w, out)
			}
		}
	}
	shows(s.ok("sale", "apply", file, "--dry-run"), "new item plain: stock 100", "dry run: nothing was changed")
	shows(s.ok("sale", "list"), "(none)")
	shows(s.ok("sale", "apply", file), "new sale double11")
	shows(s.ok("sale", "apply", file), "no change")
	shows(s.ok("sale", "open", "double11"), "double11 is open\n")
	shows(s.ok("sale", "list"), "SALE      STATUS  STARTS                     ENDS                       BALANCED\n"+
		"double11  open    2020-11-10 16:00:00 +0000  2090-11-11 16:00:00 +0000  yes\n")

	shows(s.ok("stock", "add", "double11", "plain", "50", "--id", "one"), "plain has 150 units after +50 (id one)\n")
	shows(s.ok("stock", "add", "double11", "plain", "50", "--id", "one"), "plain has 150 units after +50 (id one)\n")
	shows(s.ok("stock", "add", "double11", "plain", "-5"), "plain has 145 units after -5 (id ")
	shows(s.ok("stock", "add", "--region", "beijing", "double11", "two", "--", "-5"), "two in beijing has 35 units after -5 (id ")
	shows(s.ok("stock", "add", "double11", "a/b%c?d#e", "1"), "a/b%c?d#e has 6 units")
	shows(s.ok("stock", "add", "double11", "..", "-1", "--id=-1"), ".. has 6 units after -1 (id -1)")
	if a, b := s.ok("stock", "add", "double11", "plain", "1"), s.ok("stock", "add", "double11", "plain", "1"); a == b {
		t.Errorf("two additions have one id: %s", a)
	}
	shows(s.ok("stock", "add", "--help"), "Adds units to an item at once")

	p := newShopper(t, server)
	for _, id := range []string{"r1", "r2", "r3"} {
		p.reserve(id, "plain", 2, time.Hour)
	}
	p.must(p.Doubt(t.Context(), "double11", "r1", "timeout"))
	p.must(p.Doubt(t.Context(), "double11", "r2", "timeout"))
	shows(s.ok("sale", "show", "double11"), "double11 is open, from 2020-11-10 16:00:00 +0000 to 2090", "in doubt since ",
		"SKU        REGION    STOCK  AVAILABLE  HELD  IN DOUBT  CONFIRMED\n",
		"plain      -         147    141        2     4         0\n",
		"all        -         257    251        2     4         0\n")
	shows(s.ok("holds", "double11"), "RESERVATION  SALE      STATE     AGE", "r1           double11  in_doubt  ", "2×plain", "timeout")
	shows(s.ok("holds", "double11", "--state", "held"), "r3           double11  held")
	shows(s.ok("holds", "double11", "--limit=1"), "there are more")
	shows(s.ok("reservation", "show", "r1"), "sale            double11\n", "state           in_doubt\n")
	shows(s.ok("reservation", "confirm", "r1"), "r1 is confirmed\n")
	shows(s.ok("reservation", "release", "r2", "--force"), "r2 is released\n")
	shows(s.ok("sale", "pause", "double11"), "double11 is paused\n")
	shows(s.ok("sale", "close", "double11"), "double11 is closed\n")

	if entries := s.logged("sale status set"); len(entries) != 3 || entries[0]["by"] != "ann@unix" {
		t.Errorf("%v", entries)
	}
}

// With --json the API's answer is all that is printed, byte for byte.
func TestCommandsPrintTheAnswer(t *testing.T) {
	server, app := realRedis(t)
	s := openSite(t, app)
	file := s.file("sale.json", `{"id":"double11","starts_at":"2020-01-01T00:00:00Z","ends_at":"2090-01-01T00:00:00Z","items":[{"sku":"plain","stock":3}]}`)
	for _, c := range []struct {
		args []string
		into any
	}{
		{[]string{"sale", "apply", file}, new(applied)},
		{[]string{"sale", "open", "double11"}, new(books)},
		{[]string{"sale", "list"}, new(listed)},
		{[]string{"sale", "show", "double11"}, new(books)},
		{[]string{"holds", "double11"}, new(holds)},
		{[]string{"stock", "add", "double11", "plain", "1"}, new(map[string]any)},
	} {
		out := s.ok(append(c.args, "--json")...)
		dec := json.NewDecoder(strings.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(c.into); err != nil {
			t.Errorf("%q: %v in %s", c.args, err, out)
		}
	}
	if out, want := s.ok("sale", "show", "double11", "--json"), s.admin("GET", "/stockgate/sales/double11", "").body; out != want {
		t.Errorf("%s, not %s", out, want)
	}
	newShopper(t, server).reserve("r", "plain", 1, time.Hour)
	var r reservation.Record
	if err := json.Unmarshal([]byte(s.ok("reservation", "show", "r", "--json")), &r); err != nil || r.State != reservation.Held {
		t.Errorf("%+v %v", r, err)
	}
	if r := s.run("sale", "show", "nosuch", "--json"); r.status != 1 || r.out != "{\"error\":\"no such sale: nosuch\"}\n" || r.errors == "" {
		t.Errorf("%+v", r)
	}
}

func TestCommandsExitStatus(t *testing.T) {
	server, app := realRedis(t)
	s := openSite(t, app)
	s.openSale()
	newShopper(t, server).reserve("held", "plain", 1, time.Hour)
	short := s.file("short.yaml", strings.Replace(saleFile, "stock: 100", "stock: 0", 1))
	broken := s.file("broken.yaml", "id: UPPER\nstarts_at: tomorrow\n")
	oneMistake := s.file("one.yaml", saleFile+"status: open\n")
	for _, c := range []struct {
		args   []string
		status int
		says   string // in the one line on stderr
	}{
		{[]string{"sale", "open", "nosuch"}, 1, "caddy stockgate sale open: no such sale: nosuch\n"},
		{[]string{"sale", "apply", short}, 1, "only 99 are available"},
		{[]string{"sale", "apply", oneMistake}, 1, "one.yaml: line 11: status: "},
		{[]string{"stock", "add", "double11", "nope", "1"}, 1, "has no item nope"},
		{[]string{"reservation", "release", "held"}, 1, "may still sell this reservation"},
		{[]string{"reservation", "show", "nosuch"}, 1, "no such reservation: nosuch"},

		{nil, 2, "which command? There are sale, stock, holds, reservation"},
		{[]string{"sell"}, 2, `there is no command "sell"`},
		{[]string{"sale"}, 2, "which command?"},
		{[]string{"sale", "destroy", "double11"}, 2, `there is no command "destroy"`},
		{[]string{"sale", "open"}, 2, "it takes one argument: caddy stockgate sale open <sale>\n"},
		{[]string{"sale", "open", "a", "b"}, 2, "it takes one argument"},
		{[]string{"sale", "list", "x"}, 2, "it takes no arguments"},
		{[]string{"sale", "list", "--all"}, 2, "unknown flag: --all"},
		{[]string{"sale", "show", "No Id"}, 2, `"No Id" is no id of a sale`},
		{[]string{"sale", "apply", s.path("missing")}, 2, "no such file"},
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
		{[]string{"holds", "double11", "--address", "", "--config", s.path("missing")}, 2, "no such file"},

		{[]string{"sale", "list", "--address", "unix/" + s.path("nothing.sock")}, 3, "is it running?"},
		{[]string{"sale", "list", "--address", "unix/" + s.socket("http")}, 3, "does not know stockgate"},
	} {
		r := s.run(c.args...)
		if r.status != c.status || r.out != "" {
			t.Errorf("%q: %d, not %d\n%s%s", c.args, r.status, c.status, r.out, r.errors)
		}
		if !strings.HasPrefix(r.errors, "caddy stockgate") || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, c.says) {
			t.Errorf("%q: %q does not say %q in one line", c.args, r.errors, c.says)
		}
	}
	if r := s.run("sale", "apply", broken); r.status != 1 || !strings.Contains(r.errors, "broken.yaml has 4 mistakes:\nline 1: id: ") {
		t.Errorf("%d %s", r.status, r.errors)
	}

	server.Stop()
	r := s.run("stock", "add", "double11", "plain", "1")
	if r.status != 3 || !regexp.MustCompile(`^caddy stockgate stock add: redis does not answer.*\(repeat it with --id [0-9a-f-]{36}: it is made once\)\n$`).MatchString(r.errors) {
		t.Errorf("%d %q", r.status, r.errors)
	}
	s.load(nil)
	if r := s.run("sale", "list"); r.status != 3 || !strings.Contains(r.errors, "no stockgate app is running") {
		t.Errorf("%d %q", r.status, r.errors)
	}
}

// The endpoint is found in a configuration, and a file may come from a pipe.
func TestCommandsFindCaddy(t *testing.T) {
	_, app := realRedis(t)
	s := openSite(t, app)
	config := s.file("Caddyfile", "{\n\tadmin "+s.adminAddress()+"|0200\n}\n")
	if r := run(t, saleFile, "sale", "apply", "-", "--config", config); r.status != 0 {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{
		{"sale", "open", "double11", "-c", config, "-a", "caddyfile"},
		{"stock", "add", "-c", config, "double11", "plain", "-1"},
		{"--config=" + config, "stock", "add", "double11", "plain", "-1"},
	} {
		if r := run(t, "", args...); r.status != 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if b := do[books](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.cell("plain", "") != "98 98 0 0 0" {
		t.Errorf("%+v", b)
	}
}
