package selfcheck_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/recipe"
)

// recordings were made by Chromium at the shops themselves, see internal/test/shoptest.
const recordings = "../../../internal/learn/testdata"

// TestKnownShops learns from recordings of shops whose configuration is tested, and checks it: it is the tested one
// but for the addresses. So what is tested in front of these shops holds for what is learned too.
func TestKnownShops(t *testing.T) {
	for _, r := range recipe.All() {
		t.Run(r.Name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(recordings, r.ID+"-*.har"))
			if err != nil || len(files) != 3 {
				t.Fatal(files, err)
			}
			slices.SortFunc(files, func(a, b string) int { // the order that was taken first
				return strings.Index("buy again refused", name(a)) - strings.Index("buy again refused", name(b))
			})
			dir := t.TempDir()
			ran := runLearn(t, dir, append([]string{"--shop", "10.0.0.5:3000"}, files...)...)
			if ran.Status != 0 || !strings.Contains(ran.Out, "looks like "+r.Name+" "+r.Versions) {
				t.Fatalf("%d %s%s", ran.Status, ran.Out, ran.Errors)
			}
			learned := read(t, dir, "Caddyfile")
			tested, err := os.ReadFile(filepath.Join("../../../examples", r.ID, "Caddyfile"))
			if err != nil {
				t.Fatal(err)
			}
			back := strings.NewReplacer("{$SITE:shop.example.com}", "{$SITE:http://:8080}", "{$SHOP:10.0.0.5:3000}", "{$SHOP:"+r.Default("SHOP")+"}")
			if withoutComments(back.Replace(learned)) != withoutComments(string(tested)) || strings.Count(learned, "shop.example.com}") != 1 || strings.Contains(learned, r.Default("SHOP")) {
				t.Errorf("it is not the tested configuration:\n%s", learned)
			}
			if !regexp.MustCompile(`\{sku: "SNK-1", ids: \["[A-Za-z0-9_]+"\], stock: 1\}`).MatchString(read(t, dir, "sale.yaml")) {
				t.Error(read(t, dir, "sale.yaml"))
			}
			warningsRepeated(t, dir)
			inOrder(t, dir)
			for _, file := range []string{"Caddyfile", "sale.yaml", "questions.md"} {
				if text := read(t, dir, file); strings.Contains(text, "ada@") || strings.Contains(text, "Ada Example") || regexp.MustCompile(`[0-9a-f]{32}|cart_|session=`).MatchString(text) {
					t.Errorf("%s has values of the recording:\n%s", file, text)
				}
			}
		})
	}
}

// name is the last word of a recording's name.
func name(file string) string {
	_, last, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".har"), "-")
	return last
}

var comment = regexp.MustCompile(`(?m)^[\t ]*#.*\n`)

func withoutComments(text string) string { return comment.ReplaceAllString(text, "") }

// inOrder looks for the line of each question in the files.
func inOrder(t *testing.T, dir string) {
	t.Helper()
	files := read(t, dir, "Caddyfile") + read(t, dir, "sale.yaml")
	for _, m := range regexp.MustCompile("(?s)\n```\n(.*?)\n```\n").FindAllStringSubmatch(read(t, dir, "questions.md"), -1) {
		if m[1] == "" || !strings.Contains(files, m[1]) {
			t.Errorf("a question is about the line %q, which no file has", m[1])
		}
	}
}

// TestKnownShopThatDiffers learns from recordings of shops that resemble a known one: the configuration is inferred,
// passes its check, and a question says why.
func TestKnownShopThatDiffers(t *testing.T) {
	for _, c := range []struct{ name, recording, old, new, want string }{
		{"Vendure at another path", "vendure-buy.har", "/shop-api", "/api/shop", "its path is another one"},
		{"another name of the session", "vendure-buy.har", "session", "connect", "it has none of these: header Authorization, cookie session"},
		{"no SKU", "vendure-buy.har", `\"sku\":`, `\"mark\":`, "no answer before the order shows its items with their SKUs"},
		{"a door more", "vendure-buy.har", "setOrderShippingAddress", "placeExpressOrder", "looks like an order too"},
	} {
		raw, err := os.ReadFile(filepath.Join(recordings, c.recording))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "buy.har")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), c.old, c.new)), 0o600); err != nil {
			t.Fatal(err)
		}
		ran := runLearn(t, dir, file)
		if ran.Status != 0 || strings.Contains(ran.Out, "looks like") {
			t.Errorf("%s: %d %s%s", c.name, ran.Status, ran.Out, ran.Errors)
			continue
		}
		if questions := read(t, dir, "questions.md"); !strings.Contains(questions, "Is this a known shop?") || !strings.Contains(questions, c.want) {
			t.Errorf("%s: %s", c.name, questions)
		}
	}
}
