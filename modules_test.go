package stockgate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modules are the directories of this repository's Go modules.
var modules = []string{".", "bench"}

// programs is a module without code: it fixes the versions of programs that scripts run.
const programs = "scripts/tools"

// importGraph is every package that the modules are built from, with what each imports,
// tests aside.
func importGraph(t *testing.T) map[string][]string {
	t.Helper()
	graph := map[string][]string{}
	for _, dir := range modules {
		cmd := exec.Command("go", "list", "-buildvcs=false", "-deps", "-json=ImportPath,Imports", "./...")
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v\n%s", dir, err, &stderr)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				ImportPath string
				Imports    []string
			}
			if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("read what go list says in %s: %v", dir, err)
			}
			graph[pkg.ImportPath] = pkg.Imports
		}
		if root := path.Join(own, dir); len(graph[root]) == 0 {
			t.Fatalf("go list knows %d packages, but not that %s imports anything", len(graph), root)
		}
	}
	return graph
}

// TestEveryModuleIsChecked: a module of its own is left out of "./...", so whatever goes
// through all packages has to know of it.
func TestEveryModuleIsChecked(t *testing.T) {
	var found []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			found = append(found, filepath.ToSlash(filepath.Dir(name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if want := append(slices.Clone(modules), programs); !slices.Equal(found, want) {
		t.Errorf("there are modules in %q, and the rules are about those in %q", found, want)
	}
	if code, err := filepath.Glob(programs + "/*.go"); err != nil || len(code) > 0 {
		t.Errorf("%s has code that nothing checks: %v %v", programs, code, err)
	}
	for _, dir := range modules[1:] {
		for file, want := range map[string]string{"scripts/test": "go test -C " + dir + " ", "scripts/lint": " " + dir + ";"} {
			if !strings.Contains(read(t, file), want) {
				t.Errorf("%s does not check %s: it lacks %q", file, dir, want)
			}
		}
	}
}

// The packages that scripts/packages calls calm start no goroutine, and none of their tests does.
func TestCalmPackages(t *testing.T) {
	out, err := exec.Command("scripts/packages", "calm").Output()
	if err != nil {
		t.Fatal(err)
	}
	starts := regexp.MustCompile(`(?m)^\s*(defer )?go (func|[a-z])|\.(Go|Parallel|BeginOrder)\(|\b[a-z]\w*\.Start\(\)`)
	files := 0
	for _, dir := range strings.Fields(string(out)) {
		found, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			files++
			if what := starts.FindString(read(t, file)); what != "" {
				t.Errorf("%s has %q", file, strings.TrimSpace(what))
			}
		}
	}
	if files == 0 {
		t.Error("no package is calm")
	}
}

// The race detector allocates: scripts/test runs without it what must not, and what is built only
// without it. The names of these tests say so.
func TestWithoutTheRaceDetector(t *testing.T) {
	names := regexp.MustCompile(`-run '(\S+)' \$alloc`).FindStringSubmatch(read(t, "scripts/test"))
	if names == nil {
		t.Fatal("scripts/test does not say which tests it runs without the race detector")
	}
	named := regexp.MustCompile(names[1])
	sets := map[string][]string{}
	packages := func(args ...string) string {
		out, err := exec.Command("scripts/packages", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, set := range []string{"plain", "split", "alloc"} {
		sets[set] = strings.Fields(packages(set))
	}
	withRace := strings.Split(strings.TrimSpace(packages(append([]string{"tests"}, sets["split"]...)...)), "|")
	runsWithout := func(dir, test string) bool {
		switch {
		case slices.Contains(sets["plain"], dir):
			return true
		case slices.Contains(sets["split"], dir):
			return !slices.Contains(withRace, test)
		}
		return slices.Contains(sets["alloc"], dir) && named.MatchString(test)
	}
	without, test := regexp.MustCompile(`(?m)^//go:build .*!race\b`), regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	seen := 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, dir := read(t, name), "./"+filepath.ToSlash(filepath.Dir(name))
		for _, m := range test.FindAllStringSubmatch(text, -1) {
			if !without.MatchString(text) && !strings.Contains(m[1], "Alloc") {
				continue
			}
			seen++
			if !runsWithout(dir, m[1]) {
				t.Errorf("scripts/test does not run %s of %s without the race detector", m[1], dir)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d tests, %v", seen, err)
	}
}
