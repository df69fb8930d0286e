package lua_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/lua"
)

// inParts are the files that are no operation: what several operations or scripts have in common.
func inParts(name string) bool { return in[name] > 0 }

// Every file is an operation of the table or a part of several, and the other way round.
func TestTableAndFiles(t *testing.T) {
	var have, want []string
	for name := range files(t) {
		if !inParts(name) {
			have = append(have, strings.TrimSuffix(name, ".lua"))
		}
	}
	for _, o := range lua.Operations() {
		want = append(want, o.Name)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the files are\n%q, the table has\n%q", have, want)
	}
	for _, o := range lua.Operations() {
		text := files(t)[o.Name+".lua"]
		if defines := operation.MatchString(text); defines != o.Shared() {
			t.Errorf("%s shares its script: %v, and its file is a function of operations: %v", o.Name, o.Shared(), defines)
		}
		if source := lua.Redis().Of(o).Source; !strings.Contains(source, strings.SplitN(text, "\n", 2)[0]) {
			t.Errorf("the script %s does not have %s", o.Script, o.Name)
		}
	}
}

// An operation that reads writes nothing, and calls no function that does; any other one does.
func TestReading(t *testing.T) {
	all, comments := files(t), regexp.MustCompile(`--.*`)
	function := regexp.MustCompile(`(?m)^(?:local )?function (\w+)\(`)
	bodies := map[string]string{} // of the functions of parts
	for name, text := range all {
		if !inParts(name) {
			continue
		}
		text = comments.ReplaceAllString(text, "")
		at := function.FindAllStringSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			bodies[text[m[2]:m[3]]] = text[m[1]:end]
		}
	}
	writes := `\bchanged\.|\bdirty = true|call\('(?:HSET|HDEL|HINCRBY|SET|DEL|UNLINK|ZADD|ZREM|XADD|XTRIM|SADD|SREM|RENAME|PEXPIRE)'|call\(command|operations\.\w+\(\{`
	for grown := true; grown; {
		grown = false
		writing := regexp.MustCompile(writes)
		for name, body := range bodies {
			if writing.MatchString(body) {
				writes += `|\b` + name + `\(`
				delete(bodies, name)
				grown = true
			}
		}
	}
	writing := regexp.MustCompile(writes)
	for _, o := range lua.Operations() {
		text := all[o.Name+".lua"]
		body := comments.ReplaceAllString(strings.TrimPrefix(text, header(text)), "")
		if found := writing.FindString(body); o.Reads == (found != "") {
			t.Errorf("%s reads: %v, and writes by %q", o.Name, o.Reads, found)
		}
	}
}

// What asked.lua makes beside what is asked for, and lets run while a shard is being restored, is what
// the table says.
func TestTableAndAsked(t *testing.T) {
	text := files(t)["asked.lua"]
	word := regexp.MustCompile(`asked(?:\.(\w+)|\['(\w+)'\])`)
	made := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^if asked\.(\w+) then (.*) = true.* end`).FindAllStringSubmatch(text, -1) {
		for _, w := range word.FindAllStringSubmatch(m[2], -1) {
			made[m[1]] = append(made[m[1]], w[1]+w[2])
		}
	}
	needs, while := map[string][]string{}, []string{}
	for _, o := range lua.Operations() {
		for _, n := range o.Needs() {
			needs[o.Name] = append(needs[o.Name], n.Name)
		}
		if o.RunsWhileRestoring() {
			while = append(while, o.Name)
		}
	}
	sorted := func(m map[string][]string) map[string][]string {
		for _, list := range m {
			slices.Sort(list)
		}
		return m
	}
	if !maps.EqualFunc(sorted(made), sorted(needs), slices.Equal[[]string]) {
		t.Errorf("asked.lua makes %v too, the table %v", made, needs)
	}
	excepted := regexp.MustCompile(`shard\.restoring and ARGV\[8\] ~= '(\w+)'`).FindStringSubmatch(text)
	if len(while) != 1 || excepted == nil || excepted[1] != while[0] {
		t.Errorf("while a shard is being restored asked.lua lets %q run, the table %q", excepted, while)
	}
}

// The scripts that change stock ask whether the shard is fenced. Those that stand alone move none.
func TestFencedScripts(t *testing.T) {
	asks := regexp.MustCompile(`(?m)(^|[^\w.])fenced\(ARGV`)
	for _, o := range lua.Operations() {
		if got, want := asks.MatchString(lua.Redis().Of(o).Source), o.Shared() || o == lua.Reserve; got != want {
			t.Errorf("%s asks whether the shard is fenced: %v, want %v", o.Name, got, want)
		}
		if o.Promise && !o.Lease || o.Reads && o.Lease {
			t.Errorf("%s is a promise without a lease, or reads and needs one", o.Name)
		}
	}
}
