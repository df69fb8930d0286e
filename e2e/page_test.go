package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pageOf is a page of docs.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blockOf is the first block of a language on a page.
func blockOf(t *testing.T, page, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "```"+language+"\n")
	text, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("the page has no block of %s", language)
	}
	return text
}

// changed is a text with others in the place of some of its parts, each of which it must have.
func changed(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the configuration has no %q:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// signed is an order of one unit by a buyer whom a page's `jwt hmac` knows.
func signed(buyer, sku string) order {
	return signedIn(one("", sku, 1, ""), loginSecret, fmt.Sprintf(`{"sub":%q}`, buyer))
}

// spanIn is the duration that follows a word in a text.
func spanIn(t *testing.T, text, word string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(regexp.QuoteMeta(word) + `([0-9]+[smh])`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %q", word)
	}
	d, err := time.ParseDuration(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}
