package caddymodule_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// optionsOfExample are the options that the example's gate shows commented out, in the order of the
// file. Those that open a block, or name an answer of a block, are not among them.
var optionsOfExample = []string{
	"lines", "jwt", "jwt", "buyer", "idempotency_ttl", "ref", "repeats", "sale", "region", "identity", "identity", "rate", "rate", "rate",
	"deny", "allow", "other_items", "outcome", "shadow", "refuse", "refuse", "refuse", "refuse",
}

// besideOption is what an option cannot be without.
var besideOption = map[string]string{"repeats": "\t\tref {json.order_no}", "jwt": "\t\tbuyer {jwt.sub}", "buyer": "\t\tjwt hmac {env.SHOP_JWT_SECRET}"}

// Each commented option of the example's gate stands on a line of its own. Without the comment sign it
// can be adapted, in the place of an active line of the same option.
func TestCommentedOptionsOfTheExample(t *testing.T) {
	text, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "\tstockgate @order main {\n")
	gate, after, ok := strings.Cut(rest, "\n\t}\n")
	if !ok {
		t.Fatal("the example has no gate")
	}
	before = strings.ReplaceAll(before, "# list ", "list ") // what deny and allow name
	commented, opens := regexp.MustCompile(`^\t\t# ((\w+)\b.*)$`), regexp.MustCompile(` \{( #|$)`)
	var shown []string
	lines := strings.Split(gate, "\n")
	for i, line := range lines {
		m := commented.FindStringSubmatch(line)
		if m == nil || !slices.Contains(optionsOfExample, m[2]) || opens.MatchString(line) {
			continue
		}
		shown = append(shown, m[2])
		var changed []string
		for j, other := range lines {
			name, _, _ := strings.Cut(strings.TrimPrefix(other, "\t\t"), " ")
			switch {
			case j == i:
				changed = append(changed, "\t\t"+m[1], besideOption[m[2]])
			case name != m[2] && !(m[2] == "lines" && name == "line") && !(m[2] == "jwt" && name == "buyer"):
				changed = append(changed, other)
			}
		}
		if result, _, failed := adapted(before + "\tstockgate @order main {\n" + strings.Join(changed, "\n") + "\n\t}\n" + after); failed {
			t.Errorf("%s: %s", m[1], result)
		}
	}
	if !slices.Equal(shown, optionsOfExample) {
		t.Errorf("it shows %q, want %q", shown, optionsOfExample)
	}
}
