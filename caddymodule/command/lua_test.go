package command_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/lua"
)

// What is dumped and loaded by redis-cli is what Stockgate runs: Redis gives each script the
// SHA1 of the list, and a sale on that Redis loads no other.
func TestLuaDump(t *testing.T) {
	server, app := sitetest.Redis(t)
	cli := func(stdin string, args ...string) string {
		t.Helper()
		host, port, _ := strings.Cut(server.Addr(), ":")
		cmd := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-h", host, "-p", port, "-e"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	list := sitetest.Run(t, "", "lua", "dump")
	if list.Status != 0 || list.Errors != "" {
		t.Fatalf("%+v", list)
	}
	rows := strings.Split(strings.TrimSpace(list.Out), "\n")[1:]
	if len(rows) != len(lua.Redis().All()) {
		t.Fatalf("of %d scripts it lists\n%s", len(lua.Redis().All()), list.Out)
	}
	for _, row := range rows {
		cells := strings.Fields(row)
		r := sitetest.Run(t, "", "lua", "dump", cells[0])
		if r.Status != 0 || r.Errors != "" {
			t.Fatalf("%s: %+v", cells[0], r)
		}
		if sha := cli(r.Out, "-x", "SCRIPT", "LOAD"); sha != cells[1] {
			t.Errorf("%s: Redis names it %s, the list %s", cells[0], sha, cells[1])
		}
		if same := sitetest.Run(t, "", "lua", "dump", cells[1]); same != r {
			t.Errorf("%s and %s: %+v", cells[0], cells[1], same)
		}
	}

	cli("", "CONFIG", "RESETSTAT")
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("won", "few", 1, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "won", reservation.SourceAnswer, "paid"))
	if stats := cli("", "INFO", "commandstats"); strings.Contains(stats, "cmdstat_script|load") || !strings.Contains(stats, "cmdstat_evalsha") {
		t.Errorf("Stockgate runs other scripts than were loaded:\n%s", stats)
	}
}

func TestLuaDumpAsJSON(t *testing.T) {
	var list []struct{ Name, SHA1, Source string }
	r := sitetest.Run(t, "", "lua", "dump", "--json")
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil || len(list) != len(lua.Redis().All()) || list[0].Name != "claim" || list[0].Source != "" {
		t.Errorf("%v %+v", err, r)
	}
	one := list[0]
	r = sitetest.Run(t, "", "lua", "dump", "claim", "--json")
	if err := json.Unmarshal([]byte(r.Out), &one); err != nil || one.Source != lua.Redis().Of(lua.Reserve).Source || one.SHA1 != lua.Redis().Of(lua.Reserve).SHA {
		t.Errorf("%v %+v", err, r)
	}
}

func TestLuaDumpOfNoScript(t *testing.T) {
	for _, args := range [][]string{{"nosuch"}, {"claim", "settle"}} {
		if r := sitetest.Run(t, "", append([]string{"lua", "dump"}, args...)...); r.Status != 2 || r.Out != "" || r.Errors == "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
