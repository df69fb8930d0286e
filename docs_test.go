package stockgate_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

// pages are the README and the pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	return append([]string{"README.md"}, files...)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
)

// anchors are the anchors that GitHub gives the headings of a page.
func anchors(text string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		names = append(names, name)
	}
	return names
}

// Every link to a file of the repository leads to one, and to a heading that it has.
func TestLinks(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		text := codeSpan.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.Join(filepath.Dir(page), target)
			}
			checked++
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: %s has no heading for the link %s", page, file, m[1])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// Every page is in the index and in the site.
func TestIndexOfDocs(t *testing.T) {
	index, site := read(t, "docs/README.md"), read(t, "mkdocs.yml")
	for _, page := range pages(t)[1:] {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
		if name := filepath.Base(page); !strings.Contains(site, ": "+name+"\n") {
			t.Errorf("mkdocs.yml does not list %s", name)
		}
	}
}

// The README is a door: what is longer belongs into docs.
func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(read(t, "README.md"))); n >= 1200 {
		t.Errorf("the README has %d words; it must have less than 1,200: move some to docs", n)
	}
}

// Each command of a console has a line of its own: paragraphs are filled again now and then, and
// a block must not be filled with them.
func TestCommandsHaveALineEach(t *testing.T) {
	joined := regexp.MustCompile(`(?m)^\$ [^\n]* \$ (?:[a-z]|$)[^\n]*$`)
	for _, page := range append(pages(t), "bench/README.md", "CONTRIBUTING.md") {
		for _, block := range fence.FindAllString(read(t, page), -1) {
			if line := joined.FindString(block); line != "" {
				t.Errorf("%s: a line has two commands: %s", page, line)
			}
		}
	}
}

// rows are the cells of the tables in a text, without the heads.
func rows(text string) [][]string {
	var all [][]string
	head := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
			continue
		case strings.HasPrefix(line, "|---"):
			head = false
			continue
		case head:
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
		}
		all = append(all, cells[1:len(cells)-1])
	}
	return all
}

// part is what stands under a heading, down to the next one of any level.
func part(t *testing.T, page, name string) string {
	t.Helper()
	_, after, ok := strings.Cut(read(t, page), "\n"+name+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, name)
	}
	if end := regexp.MustCompile(`(?m)^#`).FindStringIndex(fence.ReplaceAllStringFunc(after, blank)); end != nil {
		after = after[:end[0]]
	}
	return after
}

// blank keeps the length of a text and nothing of it.
func blank(text string) string { return strings.Repeat(" ", len(text)) }

// Every reason is in docs/refusals.md, in the order of sale.Kinds, with its status and
// whether it always has a Retry-After.
func TestRefusalsAreDocumented(t *testing.T) {
	var want, have []string
	for _, k := range sale.Kinds {
		want = append(want, fmt.Sprintf("%s %d %v", k.Reason, k.Status, k.Wait))
		if http.StatusText(k.Status) == "" {
			t.Errorf("%s has the status %d", k.Reason, k.Status)
		}
	}
	for _, row := range rows(part(t, "docs/refusals.md", "## Reasons")) {
		have = append(have, fmt.Sprintf("%s %s %v", strings.Trim(row[0], "`"), row[1], row[2] == "yes"))
		if row[3] == "" || row[4] == "" {
			t.Errorf("docs/refusals.md does not explain %s", row[0])
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("docs/refusals.md has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// Every field of a sale's file is in docs/sale-file.md, and no other.
func TestSaleFileIsDocumented(t *testing.T) {
	fields := func(of any, more ...string) []string {
		names := more
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	for name, want := range map[string][]string{
		"## The sale": fields(sale.Sale{}, "stock_from", "bought_from"), // which the parser replaces by items
		"## An item":  fields(sale.Item{}),
		"## A limit":  fields(sale.Limit{}),
	} {
		var have []string
		for _, row := range rows(part(t, "docs/sale-file.md", name)) {
			for _, span := range codeSpan.FindAllString(row[0], -1) {
				have = append(have, strings.Trim(span, "`"))
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("docs/sale-file.md, %q: it has %q, want %q", name, have, want)
		}
	}
}

// Every metric is in docs/metrics.md, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	var files []string
	for _, pattern := range []string{"caddymodule/internal/meter/*.go", "caddymodule/app/metrics_*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	metric := regexp.MustCompile(`(?:"|` + "`" + `)(stockgate_[a-z_]+)`)
	names := func(text string) []string {
		var all []string
		for _, m := range metric.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	var source strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			source.WriteString(read(t, file))
		}
	}
	have, want := names(read(t, "docs/metrics.md")), names(source.String())
	if len(want) == 0 || !slices.Equal(have, want) {
		t.Errorf("docs/metrics.md has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// Every test that a page names as evidence is in the file to which its link leads.
func TestEvidenceNamesTests(t *testing.T) {
	for page, least := range map[string]int{"bench/results/evidence.md": 20, "docs/guarantees.md": 15} {
		named := 0
		for _, m := range regexp.MustCompile(`\[(Test[^\]]+)\]\(([^)]+)\)`).FindAllStringSubmatch(read(t, page), -1) {
			source := read(t, filepath.Join(filepath.Dir(page), m[2]))
			for _, name := range strings.Split(m[1], ", ") {
				named++
				if !strings.Contains(source, "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s: there is no %s in %s", page, name, m[2])
				}
			}
		}
		if named < least {
			t.Errorf("%s names only %d tests", page, named)
		}
	}
}
