package lua_test

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/lua"
)

var update = flag.Bool("update", false, "write into each file which names of other files it uses")

var (
	topLevel  = regexp.MustCompile(`(?m)^local (?:function (\w+)|([\w, ]+))`)
	ownNames  = regexp.MustCompile(`\blocal (?:function (\w+)|([\w, ]+))|\bfor ([\w, ]+?) (?:=|in)\b|\bfunction[ \w.]*\(([\w, ]*)\)`)
	inTable   = regexp.MustCompile(`(?m)\{.*|^.*,$`)
	key       = regexp.MustCompile(`\b\w+ = `)
	names     = regexp.MustCompile(`(?:^|[^\w.:])([A-Za-z_]\w*)`)
	noCode    = regexp.MustCompile(`--.*|'[^'\n]*'`)
	usesLines = regexp.MustCompile(`(?m)^-- uses \w+\.lua: .*\n`)
)

// defined are the names that a pattern finds, without those of keywords.
func defined(pattern *regexp.Regexp, code string) map[string]bool {
	all := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(code, -1) {
		for _, group := range m[1:] {
			for name := range strings.FieldsFuncSeq(group, func(r rune) bool { return r == ',' || r == ' ' }) {
				all[name] = true
			}
		}
	}
	return all
}

// usesOf returns the lines that a file's header must have: for each other file the names of it that the file
// uses.
func usesOf(code string, from map[string]string) string {
	own, uses := defined(ownNames, code), map[string]map[string]bool{}
	code = inTable.ReplaceAllStringFunc(code, func(line string) string { return key.ReplaceAllString(line, "= ") })
	for _, m := range names.FindAllStringSubmatch(code, -1) {
		file := from[m[1]]
		if own[m[1]] || file == "" {
			continue
		}
		if uses[file] == nil {
			uses[file] = map[string]bool{}
		}
		uses[file][m[1]] = true
	}
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		b.WriteString("-- uses " + file + ": " + strings.Join(slices.Sorted(maps.Keys(uses[file])), ", ") + "\n")
	}
	return b.String()
}

// before returns the names that are defined before a file in its scripts, and the last file that does.
func before(user string, codes map[string]string) map[string]string {
	from := map[string]string{}
	for _, s := range lua.Redis().All() {
		place := func(file string) int { return strings.Index(s.Source, "-- "+file+": ") }
		var files []string
		for file := range codes {
			if at := place(file); at >= 0 && at < place(user) && file != "dryrun.lua" && file != "waits.lua" { // these return what others use
				files = append(files, file)
			}
		}
		slices.SortFunc(files, func(a, b string) int { return place(a) - place(b) })
		for _, file := range files {
			for name := range defined(topLevel, codes[file]) {
				from[name] = file
			}
		}
	}
	return from
}

// Each file's header names what it takes from the files before it in its scripts.
func TestUses(t *testing.T) {
	all, codes := files(t), map[string]string{}
	for name, text := range all {
		codes[name] = noCode.ReplaceAllString(text, " ")
	}
	for name, text := range all {
		head := header(text)
		has, want := strings.Join(usesLines.FindAllString(head, -1), ""), usesOf(codes[name], before(name, codes))
		if has == want {
			continue
		}
		if !*update {
			t.Errorf("%s must say that it\n%sand says that it\n%s(go test ./lua -run TestUses -update writes it)", name, want, has)
			continue
		}
		head = strings.TrimSuffix(usesLines.ReplaceAllString(head, ""), "--\n")
		if want != "" {
			want = "--\n" + want
		}
		if err := os.WriteFile(name, []byte(head+want+strings.TrimPrefix(text, header(text))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
