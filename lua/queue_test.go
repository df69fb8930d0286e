package lua_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/lua"
)

// Where the functions of the queue are not made, no operation calls one: it is named in the
// condition, or looks at shard.queue itself.
func TestOperationsThatNeedTheQueueGetIt(t *testing.T) {
	made := regexp.MustCompile(`(?m)^if shard\.queue or .* then$`)
	for _, s := range []*lua.Script{lua.Redis().Of(lua.Confirm), lua.Redis().Of(lua.Adjust)} {
		if found := made.FindAllString(s.Source, -1); len(found) != 1 {
			t.Fatalf("%s: the queue is made where %q", s.Name, found)
		}
	}
	condition := made.FindString(lua.Redis().Of(lua.Confirm).Source)
	all := files(t)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^local function (\w+)`).FindAllStringSubmatch(all["queue.lua"], -1) {
		names = append(names, m[1])
	}
	calls := regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\(`)
	checked := 0
	for name, text := range all {
		op := operation.FindStringSubmatch(text)
		if op == nil && name != "states.lua" || !calls.MatchString(text) {
			continue
		}
		checked++
		if op != nil && strings.Contains(condition+" ", " asked."+op[1]+" ") {
			continue
		}
		if !strings.Contains(text, "shard.queue") {
			t.Errorf("%s calls functions of queue.lua, which may not be there", name)
		}
	}
	if checked < 10 {
		t.Errorf("only %d files need the queue", checked)
	}
}
