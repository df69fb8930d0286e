package caddymodule_test

import (
	"encoding/json"
	"fmt"
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

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

var (
	caddyfileBlock = regexp.MustCompile("(?s)```caddyfile\n(.*?)```")
	yamlBlock      = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// The Caddyfiles of the README and of docs adapt as they are, without a warning of
// Stockgate's, and can be provisioned as `caddy validate` does it.
func TestCaddyfilesOfDocs(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"deny.txt": "buyer u1\n", "api.key.old": strings.Repeat("k", 32)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refusals, err := os.ReadFile("../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "messages.yaml"), yamlBlock.FindSubmatch(refusals)[1], 0o600); err != nil {
		t.Fatal(err)
	}
	certificate, key := redistest.SelfSigned(t)
	for name, file := range map[string]string{"redis-ca.pem": certificate, "edge.pem": certificate, "edge.key": key} {
		if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range exampleEnvironment {
		t.Setenv(name, value)
	}
	here := strings.NewReplacer("/etc/stockgate/", dir+"/", "/var/lib/stockgate/", dir+"/")
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	whole := make(map[string]int)
	for _, file := range append(files, "../README.md") {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range caddyfileBlock.FindAllStringSubmatch(string(page), -1) {
			if strings.HasPrefix(block[1], "{") {
				whole[filepath.Base(file)]++
			}
			text := completed(block[1])
			config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(here.Replace(text)), map[string]any{"filename": file})
			if err == nil {
				err = validate(t, config)
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", file, err, text)
			}
			for _, w := range warnings {
				if w.Directive == "stockgate" {
					t.Errorf("%s: %s in\n%s", file, w.Message, text)
				}
			}
		}
	}
	for _, page := range []string{"README.md", "configure.md", "install.md"} {
		if whole[page] == 0 {
			t.Errorf("%s has no whole Caddyfile", page)
		}
	}
}

// exampleEnvironment has the variables that the examples name.
var exampleEnvironment = map[string]string{
	"ADYEN_HMAC_KEY":        strings.Repeat("ab", 32),
	"PAYMENTS_KEY":          "a key of a provider",
	"ANN_PASSWORD_HASH":     "$2a$10$XV3VT8pdPpO3Z6E5ZrQF8edmu/JC8u.EEP.1/rrtH8jMf/sY.MW96",
	"BOB_PASSWORD_HASH":     "$2a$10$XV3VT8pdPpO3Z6E5ZrQF8edmu/JC8u.EEP.1/rrtH8jMf/sY.MW96",
	"EVE_PASSWORD_HASH":     "$2a$10$XV3VT8pdPpO3Z6E5ZrQF8edmu/JC8u.EEP.1/rrtH8jMf/sY.MW96",
	"CALLBACK_SECRET":       "a secret of the callbacks",
	"LOGIN_SECRET":          "a secret of the shop's login, 32 bytes",
	"ORIGIN_SECRET":         "a secret of the proxy",
	"MOLLIE_KEY":            "live_a_key_of_the_provider",
	"OUTBOX_SECRET":         "whsec_" + strings.Repeat("QUJD", 11),
	"NOTIFY_URL":            "https://hooks.slack.com/services/T0/B0/x",
	"REDIS_PASSWORD":        "a password",
	"SHOP_KEY":              "a key of the shop",
	"SHOP_REDIS":            "another%20password",
	"STOCKGATE_API_KEY":     strings.Repeat("k", 32),
	"TILL_SECRET":           "a secret of the till's server, 32 bytes",
	"STRIPE_WEBHOOK_SECRET": "whsec_a_secret_of_stripe",
}

// validate provisions a configuration and does not start it.
func validate(t *testing.T, adapted []byte) error {
	t.Helper()
	var config caddy.Config
	if err := json.Unmarshal(adapted, &config); err != nil {
		return err
	}
	config.StorageRaw = json.RawMessage(fmt.Sprintf(`{"module":"file_system","root":%q}`, t.TempDir()))
	return caddy.Validate(&config)
}

// completed makes a whole Caddyfile of a part.
func completed(text string) string {
	const global = "{\nstockgate {\nredis 127.0.0.1:6379\n}\n}\n"
	serving := func(options string) string {
		return strings.TrimSuffix(global, "}\n") + "servers {\n" + options + "}\n}\n"
	}
	site := func(more string) string {
		if !strings.Contains(more, "stockgate_guard") {
			more = "stockgate_guard\n" + more
		}
		return "a.example {\n@order method POST\n" + more + "}\n"
	}
	switch word := strings.Fields(text)[0]; {
	case word == "{" && (strings.Contains(text, "\tredis") || strings.Contains(text, "\tstore")): // all of it
		return text
	case word == "{": // the Redis is in another example
		return strings.Replace(text, "stockgate {\n", "stockgate {\nredis 127.0.0.1:6379\n", 1)
	case strings.HasPrefix(word, "http://"): // a site of its own
		return global + text
	case word == "redis": // an option of the global block
		return "{\nstockgate {\n" + text + "}\n}\n"
	case word == "listener_wrappers": // an option of a server
		return serving(text) + site("stockgate @order {\njwt https://id.example.com/jwks.json\nbuyer {jwt.sub}\nline {json.sku}\nfast_refusals\n}\n")
	case word == "jwt": // options of a gate
		return global + site("stockgate @order {\nline {json.sku}\n"+text+"}\n")
	case word == "fast_refusals":
		return serving("listener_wrappers {\nstockgate\n}\n") + site("stockgate @order {\njwt https://id.example.com/jwks.json\nbuyer {jwt.sub}\nline {json.sku}\n"+text+"}\n")
	}
	return global + site(text)
}

// blocks are where the Caddyfile has options: the heading of docs/configure.md that lists
// them, and a Caddyfile with the option %s in that block.
var blocks = map[string]string{
	"## Global options":     "{\nstockgate {\n%s\n}\n}\n",
	"### store":             "{\nstockgate {\nstore /var/lib/stockgate {\n%s\n}\n}\n}\n",
	"### redis":             "{\nstockgate {\nredis {\n%s\n}\n}\n}\n",
	"### tls":               "{\nstockgate {\nredis {\ntls {\n%s\n}\n}\n}\n}\n",
	"### sentinel":          "{\nstockgate {\nredis {\nsentinel a {\n%s\n}\n}\n}\n}\n",
	"### rate_redis":        "{\nstockgate {\nrate_redis {\n%s\n}\n}\n}\n",
	"### token":             "{\nstockgate {\ntoken {\n%s\n}\n}\n}\n",
	"### identities":        "{\nstockgate {\nidentities {\n%s\n}\n}\n}\n",
	"### journal":           "{\nstockgate {\njournal {\n%s\n}\n}\n}\n",
	"### outbox":            "{\nstockgate {\noutbox https://a.example/ {\n%s\n}\n}\n}\n",
	"### mirror":            "{\nstockgate {\nmirror redis://a.example {\n%s\n}\n}\n}\n",
	"### notify":            "{\nstockgate {\nnotify https://a.example {\n%s\n}\n}\n}\n",
	"## The gate":           "a.example {\nstockgate {\n%s\n}\n}\n",
	"## The check":          "a.example {\nstockgate_check {\n%s\n}\n}\n",
	"## The waiting list":   "a.example {\nstockgate_waitlist {\n%s\n}\n}\n",
	"### The shop's answer": "a.example {\nstockgate {\n@sold {\n%s\n}\n}\n}\n",
	"### jwt":               "a.example {\nstockgate {\njwt https://a.example/ {\n%s\n}\n}\n}\n",
	"### challenge":         "a.example {\nstockgate {\nchallenge pow {\n%s\n}\n}\n}\n",
	"### lookup":            "a.example {\nstockgate {\nlookup http://a.example/ {\n%s\n}\n}\n}\n",
	"### outcome ask":       "a.example {\nstockgate {\noutcome ask http://a.example/ {\n%s\n}\n}\n}\n",
	"### queue":             "a.example {\nstockgate {\nqueue {\n%s\n}\n}\n}\n",
	"### in_doubt probe":    "a.example {\nstockgate {\nin_doubt probe http://a.example/{id} {\n%s\n}\n}\n}\n",
	"## Fast refusals":      "a.example {\nstockgate {\nfast_refusals {\n%s\n}\n}\n}\n",
	"## The guard":          "a.example {\nstockgate_guard {\n%s\n}\n}\n",
	"## The page":           "a.example {\nstockgate_dashboard {\n%s\n}\n}\n",
	"### Users of the page": "a.example {\nstockgate_dashboard {\nlook {\n%s\n}\n}\n}\n",
	"## The shop's API":     "a.example {\nstockgate_api {\n%s\n}\n}\n",
	"## Payment webhooks":   "a.example {\nstockgate_resolve {\n%s\n}\n}\n",
	"### signed":            "a.example {\nstockgate_resolve {\nverify signed {\n%s\n}\n}\n}\n",
	"### paypal":            "a.example {\nstockgate_resolve {\nverify paypal A {\n%s\n}\n}\n}\n",
	"### ask":               "a.example {\nstockgate_resolve {\nask https://a.example/{id} {\n%s\n}\n}\n}\n",
	"### Events":            "a.example {\nstockgate_resolve {\n@paid {\n%s\n}\n}\n}\n",
}

// Every option that the Caddyfile knows is in docs/configure.md, under its block, and no
// other; and every block of options is one of those.
func TestOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for name, text := range blocks {
		want := optionsOf(t, name, text)
		for _, option := range want {
			known[option] = true
		}
		have := documentedOptions(t, string(page), name)
		if name == "### outcome ask" {
			have = slices.Sorted(slices.Values(append(have, documentedOptions(t, string(page), "### lookup")...)))
		}
		if !slices.Equal(have, want) {
			t.Errorf("docs/configure.md, %q: it has %q, the Caddyfile knows %q", name, have, want)
		}
	}
	for _, option := range optionsOfSource(t) {
		if !known[option] {
			t.Errorf("the option %s is in no block that this test knows: add the block, and its options to docs/configure.md", option)
		}
	}
}

// Every word of the option rate is in docs/configure.md.
func TestRateIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = caddyconfig.GetAdapter("caddyfile").Adapt([]byte("a.example {\nstockgate {\nrate all 5 1s no_such_word\n}\n}\n"), nil)
	if err == nil {
		t.Fatal("an unknown word is no error")
	}
	var want, have []string
	for _, m := range regexp.MustCompile(`\[([a-z0-9]+)`).FindAllStringSubmatch(err.Error(), -1) {
		want = append(want, m[1])
	}
	for _, name := range documentedOptions(t, string(page), "### rate") {
		if !strings.HasPrefix(name, "<") {
			have = append(have, name)
		}
	}
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(have, want) {
		t.Errorf("docs/configure.md has the words %q of rate, the Caddyfile knows %q", have, want)
	}
}

// optionsOf are the options of a block, as the error about an unknown one lists them.
func optionsOf(t *testing.T, name, text string) []string {
	t.Helper()
	_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(fmt.Sprintf(text, "no_such_option")), nil)
	if err == nil {
		t.Fatalf("%s: an unknown option is no error", name)
	}
	list := regexp.MustCompile(`unrecognized subdirective "no_such_option": there are ([^\n]*?)(?:, at |$)`).FindStringSubmatch(err.Error())
	if list == nil {
		t.Fatalf("%s: the error lists no options: %v", name, err)
	}
	return strings.Split(list[1], ", ")
}

var (
	generated      = regexp.MustCompile(`(?s)<!--generated:.*?<!--end-->`)
	optionOfList   = regexp.MustCompile("(?m)^- \\[?`([^ `]+)")
	optionsInALine = regexp.MustCompile("`([^ `]+)`")
)

// documentedOptions are the first words of the generated list under a heading of a page, or the words of
// a generated line.
func documentedOptions(t *testing.T, page, heading string) []string {
	t.Helper()
	_, part, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/configure.md has no heading %q", heading)
	}
	part, _, _ = strings.Cut(part, "\n#")
	part = generated.FindString(part)
	found := optionOfList.FindAllStringSubmatch(part, -1)
	if found == nil {
		found = optionsInALine.FindAllStringSubmatch(part, -1)
	}
	var names []string
	for _, m := range found {
		name := m[1]
		if strings.HasPrefix(name, "@") {
			name = "@name"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// optionsOfSource are the keys of all tables of options in the source of the packages below.
func optionsOfSource(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && strings.Contains(name, "/") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			table, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			m, ok := table.Type.(*ast.MapType)
			if !ok {
				return true
			}
			if value, ok := m.Value.(*ast.SelectorExpr); !ok || fmt.Sprint(value.X) != "directive" || value.Sel.Name != "Option" {
				return true
			}
			for _, entry := range table.Elts {
				if key, ok := entry.(*ast.KeyValueExpr).Key.(*ast.BasicLit); ok {
					name, err := strconv.Unquote(key.Value)
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, strings.Replace(name, "@", "@name", 1))
				}
			}
			return true
		})
	}
	if len(names) < 60 {
		t.Fatalf("only %d options were found in the source", len(names))
	}
	return names
}
