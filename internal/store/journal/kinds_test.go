package journal_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// lua/replay.lua has the same kinds of movements, which do the same.
func TestKindsAreThoseOfTheScripts(t *testing.T) {
	source, err := os.ReadFile("../../../lua/replay.lua")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?ms)^local effects = \{$(.*?)^\}$`).FindSubmatch(source)
	if table == nil {
		t.Fatal("replay.lua has no table effects")
	}
	scripts := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+) = \{ ?(.*?) ?\},$`).FindAllStringSubmatch(string(table[1]), -1) {
		scripts[m[1]] = m[2]
	}
	for _, kind := range journal.MovementKinds() {
		e, _ := journal.EffectOf(kind)
		want := ""
		switch {
		case kind == "missing": // there is nothing that could be applied again
		case kind == "loaded", kind == "applied", kind == "rebuilt", e.Opaque: // the journal does not tell the file, or the life before
			want = "opaque = true"
		case e.Sale:
			want = "status = true"
		case e.Waitlist:
			want = "entry = true"
		case e.Offers:
			want = "offers = true"
		case e.Stock:
			want = "stock = true"
		case e.Reservation:
			want = "reservation = true"
			if e.Returned {
				want += ", returned = true"
			}
			if e.Enters != "" {
				want += ", enters = '" + string(e.Enters) + "'"
			}
		}
		if got, ok := scripts[kind]; !ok || got != want {
			t.Errorf("%s is %q in replay.lua, want %q", kind, got, want)
		}
		delete(scripts, kind)
	}
	if len(scripts) > 0 {
		t.Errorf("replay.lua has %v too", scripts)
	}
}
