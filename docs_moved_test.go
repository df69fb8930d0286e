package stockgate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// docsLink is a page of docs as code, messages, alerts, examples and other pages name it, by its path.
var docsLink = regexp.MustCompile(`docs/([\w-]+\.md)(?:#([\w-]+))?`)

// Every page of docs that any file names is there, with the heading that it names.
func TestDocsLinksResolve(t *testing.T) {
	headings := make(map[string][]string)
	for _, page := range pages(t) {
		headings[page] = anchors(read(t, page))
	}
	links := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "dist", "node_modules", "testdata"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(text) || path == "docs_moved_test.go" {
			return err
		}
		for _, m := range docsLink.FindAllStringSubmatch(string(text), -1) {
			links++
			page := "docs/" + m[1]
			if names, ok := headings[page]; !ok {
				t.Errorf("%s names %s, which is not there", path, m[0])
			} else if m[2] != "" && !slices.Contains(names, m[2]) {
				t.Errorf("%s names %s: the page has no such heading", path, m[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// Every address that mkdocs.yml redirects is gone, and leads to a page and a heading that are there.
func TestMovedPages(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "mkdocs.yml"), "\n  moved: |\n")
	if !ok {
		t.Fatal("mkdocs.yml has no table of what has moved")
	}
	there := func(link string) bool {
		page, anchor, named := strings.Cut(link, "#")
		text, err := os.ReadFile(filepath.Join("docs", page))
		return err == nil && (!named || slices.Contains(anchors(string(text)), anchor))
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(table) {
		addresses := strings.Fields(line)
		if len(addresses) != 2 || !strings.HasPrefix(line, "    ") {
			t.Fatalf("mkdocs.yml: %q is no address and where it has moved to", line)
		}
		from, to := addresses[0], addresses[1]
		if there(from) || seen[from] {
			t.Errorf("mkdocs.yml: %s is still there, or listed twice", from)
		}
		if !there(to) {
			t.Errorf("mkdocs.yml: %s moved to %s, which is not there", from, to)
		}
		seen[from] = true
	}
}
