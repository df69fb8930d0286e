package recipe_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/recipe"
)

var update = flag.Bool("update", false, "write the tables of the shops' page")

const root = "../../"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRecipesFitTheirShops compares the data with the configuration and the packages beside it.
func TestRecipesFitTheirShops(t *testing.T) {
	all := recipe.All()
	if len(all) != 2 {
		t.Fatalf("%d recipes", len(all))
	}
	for _, r := range all {
		var npm struct{ Dependencies map[string]string }
		if err := json.Unmarshal([]byte(read(t, "examples/"+r.ID+"/package.json")), &npm); err != nil {
			t.Fatal(err)
		}
		if npm.Dependencies[r.Package] != r.Tested || !strings.HasPrefix(r.Tested, r.Versions+".") {
			t.Errorf("%s: tested with %s of %s, package.json has %s", r.Name, r.Tested, r.Package, npm.Dependencies[r.Package])
		}
		var known []string
		for _, v := range r.Variables {
			known = append(known, v.Name)
			if recipe.LineWith(r.Caddyfile, r.Mentions(v.Name)) == "" {
				t.Errorf("%s: the configuration does not read %s", r.Name, v.Name)
			}
		}
		for _, m := range regexp.MustCompile(`\{(?:\$|env\.)([A-Z_]+)`).FindAllStringSubmatch(r.Caddyfile, -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("%s: recipe.yaml does not have %s", r.Name, m[1])
			}
		}
		for _, q := range r.Questions {
			if recipe.LineWith(r.Caddyfile, q.Line) == "" {
				t.Errorf("%s: the configuration has no line %q", r.Name, q.Line)
			}
		}
		for _, line := range []string{"respond 404", "{$SITE", "reverse_proxy {$SHOP", "{$REDIS:"} {
			if recipe.LineWith(r.Caddyfile, line) == "" {
				t.Errorf("%s: the configuration has no line %q, which questions name", r.Name, line)
			}
		}
		doors := 0
		for _, d := range r.Doors {
			if d.Order.Method != "" {
				doors++
			}
		}
		if doors == 0 || len(r.Carries) == 0 {
			t.Errorf("%s cannot be recognised", r.Name)
		}
	}
}

// TestPagesAreMade compares the tables in docs/shops.md with the data.
func TestPagesAreMade(t *testing.T) {
	ofAll := rowsOfAll()
	for _, r := range recipe.All() {
		const page = "docs/shops.md"
		text := read(t, page)
		made := replaced(t, text, r.ID+" doors", doorsOf(r))
		made = replaced(t, made, r.ID+" variables", variablesOf(r, func(row string) bool { return !ofAll[row] }))
		made = replaced(t, made, "variables", variablesOf(r, func(row string) bool { return ofAll[row] }))
		made = replaced(t, made, r.ID+" configuration", fmt.Sprintf("[examples/%s/Caddyfile](../examples/%s/Caddyfile) is a whole configuration for %s %s, tested with version %s.\n", r.ID, r.ID, r.Name, r.Versions, r.Tested))
		if *update {
			if err := os.WriteFile(filepath.FromSlash(root+page), []byte(made), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if made != text {
			t.Errorf("%s is not as examples/%s/recipe.yaml says: go test ./internal/recipe -update", page, r.ID)
		}
		for _, m := range regexp.MustCompile(regexp.QuoteMeta(r.Name)+` ([0-9]+\.[0-9]+)`).FindAllStringSubmatch(made, -1) {
			if m[1] != r.Versions {
				t.Errorf("%s names %s %s, the recipe is of %s", page, r.Name, m[1], r.Versions)
			}
		}
	}
}

// replaced puts a text between the marks of a page.
func replaced(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+": made from recipe.yaml -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("the page has no %q and %q", begin, end)
	}
	return before + begin + "\n" + text + "\n" + end + after
}

func doorsOf(r *recipe.Recipe) string {
	table := "| door | |\n|---|---|\n"
	for _, d := range r.Doors {
		table += "| " + d.Door + " | " + d.Text + " |\n"
	}
	return table
}

// variablesOf is a table of the variables whose rows are wanted.
func variablesOf(r *recipe.Recipe, wanted func(row string) bool) string {
	table := "| environment | default | |\n|---|---|---|\n"
	for _, row := range variableRows(r) {
		if wanted(row) {
			table += row
		}
	}
	return table
}

// rowsOfAll are the rows that all recipes have: the page has them once.
func rowsOfAll() map[string]bool {
	all := recipe.All()
	has := make(map[string]int)
	for _, r := range all {
		for _, row := range variableRows(r) {
			has[row]++
		}
	}
	ofAll := make(map[string]bool)
	for row, n := range has {
		ofAll[row] = n == len(all)
	}
	return ofAll
}

func variableRows(r *recipe.Recipe) (rows []string) {
	for _, v := range r.Variables {
		or := "required"
		if d := r.Default(v.Name); d != "" {
			or = "`" + d + "`"
		}
		rows = append(rows, "| `"+v.Name+"` | "+or+" | "+v.Text+" |\n")
	}
	return rows
}

func TestRequests(t *testing.T) {
	vendure, medusa := recipe.All()[1], recipe.All()[0]
	sent := func(method, path, field string, arguments ...string) recipe.Sent {
		s := recipe.Sent{Method: method, Path: strings.Split(strings.Trim(path, "/"), "/"), Field: field, Arguments: map[string]any{}}
		for i := 0; i < len(arguments); i += 2 {
			s.Arguments[arguments[i]] = arguments[i+1]
		}
		return s
	}
	for _, c := range []struct {
		r                               *recipe.Recipe
		s                               recipe.Sent
		places, resembles, own, isKnown bool
	}{
		{vendure, sent("POST", "/shop-api", "addPaymentToOrder"), true, true, true, true},
		{vendure, sent("POST", "/shop-api/", "addPaymentToOrder"), true, true, true, true},
		{vendure, sent("POST", "/shop-api/x", "addPaymentToOrder"), false, true, true, false},
		{vendure, sent("POST", "/api/shop", "addPaymentToOrder"), false, true, false, false},
		{vendure, sent("PUT", "/shop-api", "addPaymentToOrder"), false, false, true, true},
		{vendure, sent("POST", "/shop-api", "transitionOrderToState", "state", "PaymentSettled"), true, true, true, true},
		{vendure, sent("POST", "/shop-api", "transitionOrderToState", "state", "ArrangingPayment"), false, false, true, true},
		{vendure, sent("POST", "/shop-api", "transitionOrderToState"), false, false, true, true},
		{vendure, sent("POST", "/shop-api", "expressCheckout"), false, false, true, false},
		{vendure, sent("POST", "/shop-api", ""), false, false, true, false},
		{medusa, sent("POST", "/store/carts/cart_1/complete", ""), true, true, true, true},
		{medusa, sent("POST", "/api/store/carts/cart_1/complete", ""), false, true, false, false},
		{medusa, sent("POST", "/store/carts//complete", ""), false, false, true, false},
		{medusa, sent("POST", "/store/carts/cart_1/complete/x", ""), false, false, true, false},
		{medusa, sent("GET", "/store/carts/cart_1/complete", ""), false, false, true, false},
		{medusa, sent("POST", "/store/carts/cart_1/line-items/li_1", ""), false, false, true, true},
		{medusa, sent("POST", "/store/quick-buy", ""), false, false, true, false},
		{medusa, sent("POST", "/", ""), false, false, false, false},
		{medusa, recipe.Sent{}, false, false, false, false},
	} {
		got := []bool{c.r.Places(c.s), c.r.Resembles(c.s), c.r.Own(c.s), c.r.Knows(c.s)}
		if want := []bool{c.places, c.resembles, c.own, c.isKnown}; !slices.Equal(got, want) {
			t.Errorf("%s %v: %v, not %v", c.r.Name, c.s, got, want)
		}
	}
}
