package stockgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unnamed matches words for a person of unknown identity. The subject of a sentence is a
// client, a buyer, an operator, another process: see "Words" in CONTRIBUTING.md.
var unnamed = regexp.MustCompile(`(?i)\b(nobody|somebody|someone|anybody|everybody|whoever|he|his|him|for who|of who|(?-i:Who) has)\b`)

// sparing are phrases that a sentence rarely needs: how often the project has them, which may only fall.
var sparing = []struct {
	phrase  *regexp.Regexp
	most    int
	instead string
}{
	{regexp.MustCompile(`(?i)\bsays? whether\b`), 8, "a function reports whether"},
	{regexp.MustCompile(`(?i)\banew\b`), 28, "again, or: restarts, starts over"},
	{regexp.MustCompile(`(?i)\b(that|those) of\b`), 310, "name it again"},
	{regexp.MustCompile(`(^|[.:;] |// |-- |\* )What (is|was|are|has|had|comes|came|goes|gets|a|an|the|it|they)\b`), 227, "name the thing"},
}

// wordsNever are files that are not ours, not prose, or history.
var wordsNever = []string{".git", "bin", "node_modules", "CHANGELOG.md", "LICENSE", "words_test.go"}

// wordFiles are the other files with prose, by extension or name.
var wordFiles = []string{".md", ".lua", ".sh", ".py", ".js", ".mjs", ".java", ".php", ".rb", ".html", ".conf", ".yml", ".example", "Makefile", "run", "lint", "need", "fuzz", "pgo", "levers"}

// Comments, messages and pages name the thing or the role that acts.
func TestWords(t *testing.T) {
	checked := make(map[string]int)
	found := make([]int, len(sparing))
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(wordsNever, d.Name()) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		switch ext := filepath.Ext(path); {
		case ext == ".go":
			checked[ext]++
			return checkGoWords(t, path, found)
		case hasProse(path):
			checked[ext]++
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(text), "\n") {
				checkWords(t, path, i+1, codeSpan.ReplaceAllString(line, ""), found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sparing {
		switch {
		case found[i] > s.most:
			t.Errorf("%d times %s, at most %d: %s", found[i], s.phrase, s.most, s.instead)
		case found[i] < s.most:
			t.Errorf("%d times %s: lower its number from %d", found[i], s.phrase, s.most)
		}
	}
	for _, ext := range []string{".go", ".md", ".lua"} {
		if checked[ext] < 20 {
			t.Errorf("only %d files %s were checked", checked[ext], ext)
		}
	}
}

func hasProse(path string) bool {
	for _, end := range wordFiles {
		if filepath.Base(path) == end || filepath.Ext(path) == end {
			return true
		}
	}
	return false
}

// checkGoWords checks the comments of a Go file and its strings of several words: a string
// of one word is data.
func checkGoWords(t *testing.T, path string, found []int) error {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			checkWords(t, path, files.Position(c.Pos()).Line, c.Text, found)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.ContainsAny(text, " \n") {
			checkWords(t, path, files.Position(literal.Pos()).Line, text, found)
		}
		return true
	})
	return nil
}

func checkWords(t *testing.T, path string, line int, text string, found []int) {
	t.Helper()
	for i, s := range sparing {
		found[i] += len(s.phrase.FindAllString(text, -1))
	}
	for _, word := range unnamed.FindAllString(text, -1) {
		t.Errorf("%s:%d: %q: say which client, buyer, operator or process: %s", path, line, word, strings.TrimSpace(text))
	}
}
