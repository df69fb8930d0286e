package lua_test

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/lua"
)

// files returns every Lua file and its text.
func files(t *testing.T) map[string]string {
	names, err := filepath.Glob("*.lua")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

// header is the comment with which a file begins.
func header(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

var (
	argument  = regexp.MustCompile(`(?m)^-- a\[(\d+)\]`)
	used      = regexp.MustCompile(`\ba\[(\d+)\]`)
	operation = regexp.MustCompile(`(?m)^(?:function operations\.|operations\[')(\w+)(?:\(|'\] = function\()a\)`)
	keyNamed  = regexp.MustCompile(`(?m)^-- KEYS\[[1…]`)
	argNamed  = regexp.MustCompile(`(?m)^-- ARGV\[[1…]`)
	code      = regexp.MustCompile(`\{ '([a-z_]+)'`)
)

// Every file says what it is, what it is given and what it returns, and an
// operation uses no argument that its header does not name.
func TestHeaders(t *testing.T) {
	for name, text := range files(t) {
		head := header(text)
		if !strings.HasPrefix(head, "-- "+name+": ") {
			t.Errorf("%s does not begin with its name and what it does", name)
		}
		if in[name] > 0 && name != "shard.lua" { // their keys and arguments are those of shard.lua
			continue
		}
		if !strings.Contains(head, "-- Returns ") {
			t.Errorf("%s does not say what it returns", name)
		}
		op := operation.FindStringSubmatch(text)
		if op == nil {
			if !keyNamed.MatchString(head) || !argNamed.MatchString(head) {
				t.Errorf("%s does not name its keys and arguments", name)
			}
			continue
		}
		if op[1]+".lua" != name {
			t.Errorf("%s has the operation %s", name, op[1])
		}
		named := map[string]bool{}
		for i, m := range argument.FindAllStringSubmatch(head, -1) {
			named[m[1]] = true
			if m[1] != strconv.Itoa(i+1) {
				t.Errorf("%s names a[%s] as its argument %d", name, m[1], i+1)
			}
		}
		body := strings.TrimPrefix(text, head)
		for _, m := range used.FindAllStringSubmatch(body, -1) {
			if !named[m[1]] {
				t.Errorf("%s uses a[%s], which its header does not name", name, m[1])
			}
		}
	}
}

// A header lists exactly the codes that its operation returns, and codes.go exactly
// those of all operations.
func TestCodes(t *testing.T) {
	returned := map[string]bool{}
	for name, text := range files(t) {
		head := header(text)
		told, given := map[string]bool{}, map[string]bool{}
		if _, after, ok := strings.Cut(head, "-- Returns "); ok {
			for _, m := range code.FindAllStringSubmatch(after, -1) {
				told[m[1]] = true
			}
		}
		for _, m := range code.FindAllStringSubmatch(strings.TrimPrefix(text, head), -1) {
			given[m[1]] = true
		}
		if strings.Contains(text, "return not_found()") { // of shard.lua
			given["not_found"], given["restoring"] = true, true
		}
		if strings.Contains(text, "= closed_answer()") { // of shard.lua
			for _, code := range []string{"closed", "ended", "not_started", "paused"} {
				given[code] = true
			}
		}
		for verdict, codes := range map[string][]string{ // of verdicts.lua
			"limits_verdict(": {"window", "limit", "pending"}, "unpaid_verdict(": {"unpaid"}, "stock_verdict(": {"unknown", "sold_out", "all_held"},
			"verdict_without(": {"window", "limit", "pending", "unpaid", "unknown", "sold_out", "all_held"}, // of instead.lua
			"turn_verdict(":    {"not_your_turn"},                                                           // of instead.lua
		} {
			for _, code := range codes {
				if strings.Contains(text, verdict) {
					given[code] = true
				}
			}
		}
		for _, state := range []string{"held", "confirmed", "tombstone"} { // records begin so too
			delete(given, state)
		}
		switch name {
		case "shard.lua", "changes.lua", "states.lua", "flush.lua": // list columns and sets in the same form
			told, given = nil, nil
		case "asked.lua": // for all operations
			told = given
		}
		if !maps.Equal(told, given) {
			t.Errorf("%s tells of %v and returns %v", name, slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(given)))
		}
		maps.Copy(returned, given)
	}
	if named := constants(t); !maps.Equal(named, returned) {
		t.Errorf("codes.go names %v, the scripts return %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(returned)))
	}
}

// constants are the values of codes.go.
func constants(t *testing.T) map[string]bool {
	parsed, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values[text] = true
		}
		return true
	})
	return values
}

// The scripts for both kinds of server are the same but for the line that tells
// Redis which may run when its memory is full.
func TestScriptsDifferInTheirFirstLine(t *testing.T) {
	first := map[string]string{"settle": "#!lua flags=allow-oom", "trim": "#!lua flags=allow-oom", "fence": "#!lua flags=allow-oom", "notice": "#!lua flags=allow-oom"}
	embedded := lua.Embedded().All()
	for i, script := range lua.Redis().All() {
		told, rest, _ := strings.Cut(script.Source, "\n")
		if told != cmp.Or(first[script.Name], "#!lua") || rest != embedded[i].Source || strings.Contains(rest, "#!") {
			t.Errorf("%s: the first line is %q and the rest is the same: %v", script.Name, told, rest == embedded[i].Source)
		}
		for _, s := range []lua.Script{script, embedded[i]} {
			if sum := sha1.Sum([]byte(s.Source)); hex.EncodeToString(sum[:]) != s.SHA {
				t.Errorf("%s: %s is not the name that Redis gives it", s.Name, s.SHA)
			}
		}
	}
}

// in says how many scripts have a file that several need.
var in = map[string]int{"shard.lua": 4, "asked.lua": 2, "changes.lua": 4, "bindings.lua": 4, "unpaid.lua": 4, "states.lua": 3, "flush.lua": 3, "dispatch.lua": 2, "queue.lua": 4, "replay.lua": 1, "silent.lua": 1, "waits.lua": 1, "dryrun.lua": 1, "anew.lua": 3, "queuetimes.lua": 2, "verdicts.lua": 2, "acts.lua": 3, "instead.lua": 1, "waitlist.lua": 3, "open_offers.lua": 3}

// Every operation is in exactly one script, after what it needs.
func TestEveryFileIsUsed(t *testing.T) {
	for name, text := range files(t) {
		first, _, _ := strings.Cut(text, "\n") // of the rest, constants are numbers there
		n := 0
		for _, s := range lua.Redis().All() {
			n += strings.Count(s.Source, first+"\n")
		}
		if want := max(in[name], 1); n != want {
			t.Errorf("%s is in %d scripts, want %d", name, n, want)
		}
	}
}

// Constants are numbers in the scripts: whatever is made there does not look them up.
func TestConstantsAreNumbers(t *testing.T) {
	comment := regexp.MustCompile(`--.*|'[^']*'`)
	name := regexp.MustCompile(`\b[A-Z][A-Z_]+\b`)
	for _, s := range lua.Redis().All() {
		for _, word := range name.FindAllString(comment.ReplaceAllString(s.Source, ""), -1) {
			switch word {
			case "KEYS", "ARGV", "RECORD": // RECORD is a text
			default:
				t.Errorf("%s has the name %s: a constant is a number, alone on its line", s.Name, word)
			}
		}
	}
}
