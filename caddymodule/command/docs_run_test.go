package command_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// scenarios make what the commands of a page are about, and run them.
var scenarios = map[string]func(*doc){
	"docs/api.md":        runAPI,
	"docs/capacity.md":   runCapacity,
	"docs/carts.md":      aboutHolds,
	"docs/dashboard.md":  runDashboard,
	"docs/filters.md":    runTry,
	"docs/guarantees.md": runGuarantees,
	"docs/install.md":    runInstall,
	"docs/books.md":      runJournal,
	"docs/moving-in.md":  runMoveIn,
	"docs/persons.md":    runPersons,
	"docs/queue.md":      runQueue,
	"docs/rehearse.md":   runRehearse,
	"docs/runbook.md":    runRunbook,
	"docs/sales.md":      runSales,
	"docs/internals.md":  runScripts,
	"docs/shop.md":       runShop,
}

// quickStart, compose and the others say where lines are run that no scenario runs, or why
// nothing runs them.
const (
	quickStart = "run by TestQuickStart in e2e/quick_start_test.go"
	release    = "run by scripts/release-test: there is no release to download before one is made"
	compose    = "needs a container engine, and images of others: run by scripts/compose-test where there is one, and as plain processes where not"
	long       = "takes minutes to hours: CI runs the short form of it"
	benchmark  = "needs a machine that does nothing else, for an hour"
	listPage   = "run by TestBrowserWaits in e2e/browser_waitlist_test.go"
	channels   = "run by TestRegionsOfChannels in e2e/channels_test.go"
	learns     = "run by TestLearnedShopsSellOut in caddymodule/operate/selfcheck/learn_test.go"
	shops      = "run by TestVendure and TestMedusa in internal/test/shoptest/sale_test.go, which `make shops` runs"
)

// elsewhere are the lines that no scenario runs, and why.
var elsewhere = map[string]map[string]string{
	"README.md": {
		"make demo":  "run by TestDemoOnTheEmbeddedServer in caddymodule/operate/demo/demo_test.go, without make",
		"make test":  "it runs this test",
		"make build": quickStart, "bin/caddy run": quickStart,
		"bin/caddy stockgate sale apply sale.yaml": quickStart, "bin/caddy stockgate sale open first": quickStart, "bin/caddy stockgate sale show first": quickStart,
		`curl -u alice:stockgate --json '{"sku":"20002001","quantity":2}' http://localhost:8080/api/order`: quickStart,
	},
	"bench/README.md": {
		"make bench": benchmark, "make bench BENCHTIME=3s RUNS=3": benchmark, `make bench CASES="sold-out-* reserve"`: benchmark,
		`make bench BENCHFLAGS="-connections 256"`: benchmark, "bench/pgo": benchmark, "bench/levers": benchmark,
	},
	"bench/results/evidence.md": {
		"make attack": long, "make attack-short": long, "make attack-short SCENARIOS=dead-shard SEED=7": long,
		"make chaos SEEDS=200": long, "make chaos CONFIGS=sentinel-acks SEED=7 SEEDS=1": long, "make chaos-short": long,
		"make upgrade": long, "make upgrade TOGETHER=all": long,
	},
	"docs/connect.md": {
		"caddy stockgate learn buy.har": learns, "caddy stockgate learn buy.har sold-out.har": learns,
	},
	"docs/install.md": {
		"VERSION=v1.0.0 ARCH=amd64": release,
		"RELEASE=https://github.com/stockgate/stockgate/releases/download/$VERSION": release,
		"curl -fLO $RELEASE/SHA256SUMS":                                             release,
		"curl -fLO $RELEASE/stockgate_${VERSION}_linux_$ARCH.tar.gz":                release,
		"curl -fLO $RELEASE/stockgate_${VERSION}_linux_$ARCH.cdx.json":              release,
		"curl -fLO $RELEASE/stockgate_${VERSION}_$ARCH.deb":                         release,
		"sha256sum --check --ignore-missing SHA256SUMS":                             release,
		"apt install ./stockgate_${VERSION}_$ARCH.deb":                              "needs root, and a release: scripts/deb-test installs the package with dpkg",
		"tar -xf stockgate_${VERSION}_linux_$ARCH.tar.gz":                           release,
		"stockgate_${VERSION}_linux_$ARCH/caddy version":                            release,
		"make build": "run by `make compose-test` and by every other target that needs bin/caddy",
		"xcaddy build v2.11.9 --with github.com/stockgate/stockgate": "fetches a published version: cmd/xbuild takes the same steps with this checkout",
		"go run ./cmd/xbuild --output caddy":                         "run by TestBuildsThisCheckout in cmd/xbuild/build_test.go",
		"caddy run --config Caddyfile":                               "the site runs already: TestCaddyfilesOfDocs in caddymodule/docs_test.go provisions the file",
		"chown -R caddy:caddy /var/lib/caddy":                        "needs root, and that user",
		"make image":                                                 compose, "cd examples/compose": compose, "docker compose up --detach": compose,
		`echo "STOCKGATE_KEY=$(openssl rand -hex 32)" > .env`: compose, `echo "POSTGRES_PASSWORD=$(openssl rand -hex 16)" >> .env`: compose,
		"docker compose exec edge1 caddy stockgate sale apply /etc/caddy/sale.yaml": compose, "docker compose exec edge1 caddy stockgate sale open first": compose,
		`curl -u alice:stockgate --json '{"sku":"20002001","quantity":2}' http://localhost:8000/api/order`: compose,
	},
	"docs/runbook.md": {
		"caddy stockgate key replace --begin-anew": "it needs an edge with another key: run by TestKeyReplace in caddymodule/command/operator_day_test.go",
		"systemctl restart stockgate":              "needs root and the service: scripts/deb-test upgrades the package",
	},
	"docs/sales.md": {
		"caddy stockgate stock add double11 20002001 --region market --id market-to-site-1 -- -5": channels,
		"caddy stockgate stock add double11 20002001 --region site --id site-from-market-1 5":     channels,
	},
	"docs/shops.md":    {"caddy stockgate reconcile flash --shop orders.csv": shops},
	"docs/waitlist.md": {"caddy stockgate demo --waitlist": "run by TestDemoWithAWaitingList in caddymodule/operate/demo/demo_test.go"},
	"examples/waitlist/README.md": {
		"caddy run --config examples/waitlist/Caddyfile --adapter caddyfile": listPage, "caddy stockgate sale apply examples/waitlist/sale.yaml": listPage,
		"caddy stockgate sale open first": listPage,
	},
	"examples/k6/README.md": {
		"caddy stockgate rehearse --judge-only": "the name of an option: docs/rehearse.md has the whole command",
		"URL=https://shop.test/api/order SKU=20002001 SALE=double11 ORDERS=http://10.0.0.7:9000/orders ./rehearse.sh --require 'sold>=100'": "needs k6, which is not in Debian: the page says so",
	},
}

// Every command line of the documentation is run as it is printed, but for hosts, files and
// times that stand there for example. One that is not is in elsewhere, with the reason.
func TestCommandsRun(t *testing.T) {
	for _, name := range pagesOfDocs(t) {
		if len(commands(page(t, root+name))) == 0 && scenarios[name] == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d := newDoc(t, name)
			if scenario := scenarios[name]; scenario != nil {
				scenario(d)
			}
			there := make(map[string]bool)
			for _, c := range d.lines {
				there[c.line] = true
				why := elsewhere[name][c.line]
				switch {
				case why != "" && d.done[c.line]:
					t.Errorf("%s is run, and elsewhere says why it is not", c.line)
				case why == "" && !d.done[c.line] && c.whole():
					t.Errorf("nothing runs %s", c.line)
				}
			}
			for line := range elsewhere[name] {
				if !there[line] {
					t.Errorf("the page does not have %s", line)
				}
			}
			for line := range d.done {
				if !there[line] && !strings.HasPrefix(line, "caddy __complete") {
					t.Errorf("%s is run, and is not on the page", line)
				}
			}
		})
	}
	for name := range elsewhere {
		if _, err := os.Stat(root + name); err != nil {
			t.Error(err)
		}
	}
}

// Every test that elsewhere names exists.
func TestElsewhere(t *testing.T) {
	named := regexp.MustCompile(`Test\w+`)
	in := regexp.MustCompile(`in (\S+_test\.go)`)
	for name, lines := range elsewhere {
		for line, why := range lines {
			file := in.FindStringSubmatch(why)
			if file == nil {
				continue
			}
			source := page(t, root+file[1])
			for _, test := range named.FindAllString(why, -1) {
				if !strings.Contains(source, "\nfunc "+test+"(t *testing.T)") {
					t.Errorf("%s: %s: there is no %s in %s", name, line, test, file[1])
				}
			}
		}
	}
}
