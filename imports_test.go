package stockgate_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	own       = "github.com/stockgate/stockgate"
	caddy     = "github.com/caddyserver/caddy/v2/..."
	goRedis   = "github.com/redis/go-redis/..."
	miniredis = "github.com/alicebob/miniredis/..."
)

// direction says what a package may not import, directly or through others,
// tests aside. A pattern that ends in /... includes the packages below it; a path that
// begins with a dot is in this module.
type direction struct {
	pkg       string
	forbidden []string
	except    []string // packages of pkg that the rule does not apply to
	why       string
}

// directions is what the map of arrows does not say: who may bring other modules along, and
// that what tests need, or what stands outside of the product, is not in it.
var directions = []direction{
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/..."},
		forbidden: []string{caddy},
		why:       "only caddymodule and the packages below it know Caddy",
	},
	{
		pkg: "./...",
		except: []string{".", "./cmd/...", "./caddymodule/...", "./internal/store/shard", "./internal/store/combine", "./internal/edge/risk", "./internal/store/journal", "./internal/store/lists", "./internal/store/lease", "./internal/store/rates", "./internal/store/reservation/...", "./internal/edge/fence", "./internal/edge", "./internal/ledger/recovery",
			"./internal/ledger/...", "./internal/ledger/outbox", "./internal/ledger/movein", "./internal/ledger/mirror", "./internal/store/queue", "./internal/...", "./bench/..."},
		forbidden: []string{goRedis},
		why:       "shops, solvers and other edges import these: none of them brings a client of Redis along",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/...", "./internal/store/reservation/embedded", "./internal/..."},
		forbidden: []string{miniredis},
		why:       "the embedded server must stay out of builds that do not import it",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/test/chromium/...", "./internal/test/draw", "./internal/test/redistest/...", "./internal/test/model/...", "./internal/test/mariadbtest/...", "./internal/test/spawn", "./internal/test/pgtest/...", "./internal/test/ledgertest/...", "./caddymodule/internal/sitetest/...", "./internal/test/stocktest/...", "./e2e/differential"},
		forbidden: []string{"./internal/test/chromium/...", "./internal/test/draw", "./caddymodule/internal/sitetest/...", "./internal/test/redistest/...", "./internal/test/model/...", "./internal/test/mariadbtest/...", "./internal/test/spawn", "./internal/test/ports", "./internal/test/pgtest/...", "./internal/test/ledgertest/...", "./internal/test/stocktest/..."},
		why:       "what tests need must not be compiled into what is shipped",
	},
	{
		pkg:       "./...",
		except:    []string{"./internal/test/auditor/...", "./internal/test/chaos"},
		forbidden: []string{"./internal/test/auditor/..."},
		why:       "the auditor judges what is built; nothing that is built may know it",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./caddymodule/operate/demo/...", "./caddymodule/command/...", "./caddymodule/operate/rehearse/...", "./internal/shop/...", "./internal/stampede/..."},
		forbidden: []string{"./internal/shop/...", "./internal/stampede/..."},
		why:       "the shop and the crowd of the demo stand outside of the gate",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./internal/ledger/movein", "./internal/ledger/mirror", "./caddymodule/movein", "./caddymodule/mirror"},
		forbidden: []string{"./internal/ledger/movein", "./internal/ledger/mirror", "./caddymodule/movein", "./caddymodule/mirror"},
		why:       "a build may leave moving in and the mirror out: only the root brings them",
	},
	{
		pkg:       "./...",
		except:    []string{".", "./cmd/...", "./internal/notify", "./caddymodule/notify"},
		forbidden: []string{"./internal/notify", "./caddymodule/notify"},
		why:       "a build may leave notify out: only the root brings it",
	},
}

// TestImportsPointOneWay fails with the chain of imports that breaks a rule.
func TestImportsPointOneWay(t *testing.T) {
	graph := importGraph(t)
	for _, d := range directions {
		for _, broken := range d.check(graph) {
			t.Error(broken)
		}
	}
}

// arrows is what each package imports of the others of this module, in such an order that
// each imports only what stands above it. A new arrow changes the design. Commands, examples
// and packages for tests are not in it.
var arrows = map[string][]string{
	"internal/fastpath":       nil,
	"internal/recipe":         {"examples"},
	"internal/learn":          {"filters/webhook", "internal/recipe"},
	"internal/loop":           nil,
	"internal/fastpath/h2":    {"internal/fastpath"},
	"filters/list":            {"internal/ipaddr", "internal/loop"},
	"internal/ipaddr":         nil,
	"internal/jwks":           nil,
	"internal/mac":            nil,
	"internal/post":           nil,
	"filters/challenge":       {"internal/ipaddr", "internal/mac"},
	"filters/bearer":          {"internal/jwks"},
	"internal/jsonpath":       nil,
	"internal/strictjson":     nil,
	"lua":                     nil,
	"filters/outcome":         {"internal/jsonpath"},
	"filters/route":           nil,
	"filters/webhook":         nil,
	"internal/sale/skus":      nil,
	"filters/scope":           {"filters/attempt", "filters/route", "internal/jsonpath", "internal/strictjson"},
	"internal/sale":           {"internal/ipaddr", "internal/sale/skus", "token"},
	"filters/attempt":         {"filters/route", "internal/ipaddr", "internal/sale"},
	"filters":                 {"filters/list", "internal/sale"},
	"internal/store/identity": {"internal/mac", "internal/sale"},
	"internal/store/record":   {"internal/store/identity"},
	"filters/language":        nil,
	"filters/refuse":          {"filters/language", "internal/sale"},
	"internal/store/shard":    {"internal/store/identity", "lua"},
	"internal/store/combine":  {"internal/store/shard"},
	"internal/edge/risk":      {"internal/store/shard"},
	"internal/store/journal":  {"internal/store/record", "internal/store/shard", "lua"},
	"internal/store/lists":    {"internal/loop", "internal/store/identity", "internal/store/shard", "lua"},
	"internal/store/lease":    {"internal/store/shard", "lua"},
	"internal/store/notices":  {"internal/store/shard", "lua"},
	"internal/notify":         {"internal/loop", "internal/post", "internal/store/notices"},
	"internal/store/rates":    {"internal/store/combine", "internal/store/identity", "internal/store/shard", "lua"},
	"internal/store/reservation": {
		"internal/sale", "internal/store/combine", "internal/store/identity", "internal/store/journal", "internal/store/record", "internal/store/shard",
		"lua",
	},
	"internal/store/counts": {"internal/store/shard", "lua"},
	"internal/edge/fence":   {"internal/store/reservation", "internal/store/shard", "lua"},
	"internal/store/queue": {
		"internal/sale", "internal/store/combine", "internal/store/identity", "internal/store/record", "internal/store/reservation",
		"internal/store/shard", "lua",
	},
	"internal/store/waitlist": {
		"internal/loop", "internal/sale", "internal/store/combine", "internal/store/journal", "internal/store/lease", "internal/store/record",
		"internal/store/reservation", "internal/store/shard", "lua",
	},
	"internal/edge": {
		"internal/edge/fence", "internal/edge/risk", "internal/loop", "internal/sale", "internal/sale/skus", "internal/store/combine",
		"internal/store/identity", "internal/store/journal", "internal/store/lists", "internal/store/rates", "internal/store/record",
		"internal/store/reservation", "internal/store/shard", "internal/store/waitlist", "lua",
	},
	"internal/ledger": {
		"internal/edge", "internal/loop", "internal/sale", "internal/store/journal", "internal/store/record", "internal/store/reservation",
		"internal/store/shard",
	},
	"internal/ledger/sqldb":    {"internal/ledger", "internal/store/journal"},
	"internal/ledger/mysql":    {"internal/ledger", "internal/ledger/sqldb"},
	"internal/ledger/postgres": {"internal/ledger", "internal/ledger/sqldb"},
	"internal/ledger/sqlite":   {"internal/ledger", "internal/ledger/sqldb"},
	"internal/ledger/movein":   {"internal/sale"},
	"internal/ledger/mirror": {
		"internal/ledger", "internal/ledger/movein", "internal/loop", "internal/sale", "internal/store/journal", "internal/store/record",
		"internal/store/reservation", "internal/store/shard",
	},
	"internal/ledger/outbox": {"internal/ledger", "internal/loop", "internal/post", "internal/store/journal", "internal/store/shard"},
	"internal/ledger/recovery": {
		"internal/ledger", "internal/sale", "internal/store/journal", "internal/store/record", "internal/store/reservation", "internal/store/shard",
		"internal/store/waitlist", "lua",
	},
	"internal/store/reservation/embedded": {"internal/store/shard", "lua"},
	"internal/store/child":                {"internal/loop", "internal/store/shard"},
	"internal/store/move":                 {"internal/loop", "internal/store/child", "internal/store/record", "internal/store/reservation", "internal/store/shard"},
	"internal/store/backup":               {"internal/sale", "internal/store/child", "internal/store/queue", "internal/store/reservation", "internal/store/shard"},
	"token":                               {"internal/jwks", "internal/strictjson"},

	"caddymodule/internal/accesslog": nil,
	"caddymodule/internal/directive": {"filters/outcome", "filters/refuse", "internal/sale"},
	"caddymodule/internal/timing":    {"internal/store/shard"},
	"caddymodule/internal/reply":     {"filters/attempt", "filters/refuse", "internal/sale"},
	"caddymodule/gate/option/jwt":    {"caddymodule/internal/directive", "filters", "filters/attempt", "filters/bearer", "filters/refuse", "internal/sale"},
	"caddymodule/gate/option/pow": {
		"caddymodule/internal/directive", "filters/attempt", "filters/challenge", "internal/sale",
	},
	"caddymodule/operate/adminapi":      {"filters/refuse", "internal/sale", "internal/store/journal", "internal/store/reservation"},
	"caddymodule/internal/request":      {"caddymodule/operate/adminapi", "internal/sale", "internal/strictjson"},
	"caddymodule/internal/matchers":     nil,
	"caddymodule/internal/saved":        {},
	"caddymodule/internal/span":         {},
	"caddymodule/internal/terminal":     {},
	"caddymodule/internal/meter":        {"filters/scope", "internal/edge", "internal/ledger", "internal/ledger/outbox", "internal/sale", "internal/store/counts", "internal/store/journal"},
	"caddymodule/gate/option/operation": {"caddymodule/internal/directive", "caddymodule/internal/meter", "filters/scope", "internal/strictjson"},
	"caddymodule/guard": {
		"caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/meter", "caddymodule/internal/reply", "filters/attempt",
		"filters/refuse", "filters/route", "internal/sale",
	},
	"caddymodule/edgeruntime": {
		"caddymodule/internal/meter", "caddymodule/internal/timing", "internal/edge", "internal/edge/risk", "internal/loop", "internal/store/backup",
		"internal/store/child", "internal/store/counts", "internal/store/move", "internal/store/queue", "internal/store/reservation", "internal/store/reservation/embedded",
		"internal/store/shard", "token",
	},
	"caddymodule/overviewcache": {
		"caddymodule/edgeruntime", "caddymodule/internal/timing", "internal/sale", "internal/store/queue", "internal/store/record",
		"internal/store/reservation",
	},
	"caddymodule/forward": {
		"caddymodule/edgeruntime", "caddymodule/internal/meter", "caddymodule/internal/reply", "caddymodule/internal/span", "filters", "filters/outcome",
		"filters/refuse", "internal/sale", "internal/store/record", "internal/store/reservation", "token",
	},
	"caddymodule/gate/option/accesslist": {
		"caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/timing", "filters", "filters/list", "filters/refuse",
		"internal/sale", "internal/store/lists",
	},
	"caddymodule/app/journals": {
		"caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "internal/ledger", "internal/ledger/outbox",
		"internal/sale", "internal/store/journal",
	},
	"caddymodule/app/signing":  {"caddymodule/internal/directive", "filters/challenge", "token"},
	"caddymodule/app/unlisted": {"caddymodule/edgeruntime", "filters", "internal/edge", "internal/loop", "internal/sale", "internal/store/shard"},
	"caddymodule/app": {
		"caddymodule/app/journals", "caddymodule/app/signing", "caddymodule/app/unlisted", "caddymodule/edgeruntime",
		"caddymodule/gate/option/accesslist", "caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/meter",
		"caddymodule/operate/adminapi", "caddymodule/overviewcache", "internal/edge/risk", "internal/loop", "internal/sale", "internal/store/queue",
		"internal/store/shard",
	},
	"caddymodule/ledgers/mysql":    {"caddymodule/app/journals", "internal/ledger", "internal/ledger/mysql"},
	"caddymodule/ledgers/postgres": {"caddymodule/app/journals", "internal/ledger", "internal/ledger/postgres"},
	"caddymodule/ledgers/sqlite":   {"caddymodule/app/journals", "internal/ledger", "internal/ledger/sqlite"},
	"caddymodule/internal/shopdb":  {"caddymodule/app/journals"},
	"caddymodule/mirror":           {"caddymodule/app/journals", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "internal/ledger/mirror"},
	"caddymodule/notify": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter",
		"caddymodule/internal/timing", "caddymodule/operate/adminapi", "caddymodule/overviewcache", "internal/edge", "internal/loop", "internal/notify", "internal/post", "internal/sale", "internal/store/lease",
		"internal/store/notices", "internal/store/shard",
	},
	"caddymodule/movein":              {"caddymodule/app", "internal/ledger/movein", "internal/sale"},
	"caddymodule/internal/shopurl":    nil,
	"caddymodule/gate/option/inquiry": {"caddymodule/internal/directive", "caddymodule/internal/shopurl", "filters/outcome", "filters/refuse", "filters/route", "internal/jsonpath", "internal/sale"},
	"caddymodule/gate/option/session": {
		"caddymodule/internal/directive", "caddymodule/internal/timing", "filters/attempt", "filters/route", "internal/store/lease",
		"internal/store/shard",
	},
	"caddymodule/gate/option/probe": {
		"caddymodule/edgeruntime", "caddymodule/internal/meter", "caddymodule/internal/shopurl", "filters/outcome", "internal/store/record",
		"internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/gate/option/ratelimit": {
		"caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "filters", "filters/attempt", "filters/refuse",
		"internal/sale", "internal/store/rates",
	},
	"caddymodule/gate/option": {
		"caddymodule/app", "caddymodule/gate/option/accesslist", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/jwt",
		"caddymodule/gate/option/operation", "caddymodule/gate/option/pow", "caddymodule/gate/option/ratelimit", "caddymodule/gate/option/session",
		"caddymodule/guard", "caddymodule/internal/accesslog", "caddymodule/internal/directive", "caddymodule/internal/matchers", "filters/attempt",
		"filters/refuse", "internal/sale",
	},
	"caddymodule/gate/cart": {
		"caddymodule/gate/option", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/session", "caddymodule/internal/meter", "filters/refuse",
		"filters/route", "internal/sale",
	},
	"caddymodule/gate/judge": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/gate/cart", "caddymodule/gate/option", "caddymodule/gate/option/pow",
		"caddymodule/guard", "caddymodule/internal/meter", "caddymodule/internal/reply", "caddymodule/internal/span", "filters", "filters/attempt",
		"filters/refuse", "filters/scope", "internal/edge", "internal/sale",
	},
	"caddymodule/gate/option/waiting": {
		"caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/internal/directive", "filters/outcome", "internal/store/queue",
		"internal/store/record", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/gate/check": {
		"caddymodule/app", "caddymodule/gate/judge", "caddymodule/gate/option", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/waiting",
		"caddymodule/internal/directive", "filters", "filters/refuse", "filters/scope",
	},
	"caddymodule/gate/waitlist": {
		"caddymodule/app", "caddymodule/gate/judge", "caddymodule/gate/option", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/waiting",
		"caddymodule/guard", "caddymodule/internal/directive", "caddymodule/internal/matchers", "caddymodule/internal/timing", "filters/refuse",
		"filters/scope", "internal/edge", "internal/sale",
	},
	"caddymodule/gate/selling": {
		"caddymodule/gate/option", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/probe", "caddymodule/gate/option/ratelimit",
		"caddymodule/gate/option/waiting", "caddymodule/internal/directive", "filters/attempt", "filters/outcome", "internal/edge", "internal/store/queue",
		"internal/store/record",
	},
	"caddymodule/gate/asking": {
		"caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/gate/judge", "caddymodule/gate/option/inquiry", "caddymodule/gate/option/session",
		"caddymodule/gate/selling", "caddymodule/internal/meter", "caddymodule/internal/timing", "filters", "filters/outcome", "internal/edge",
		"internal/sale", "internal/store/record", "internal/store/reservation",
	},
	"caddymodule/gate/shadow": {
		"caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/gate/judge", "caddymodule/gate/selling", "caddymodule/internal/meter", "filters",
		"filters/attempt", "filters/outcome", "internal/edge", "internal/sale", "internal/store/reservation",
	},
	"caddymodule/gate/sending": {
		"caddymodule/forward", "caddymodule/gate/asking", "caddymodule/gate/judge", "caddymodule/gate/selling", "caddymodule/internal/meter",
		"caddymodule/internal/reply", "filters", "filters/refuse", "internal/sale", "internal/store/reservation",
	},
	"caddymodule/gate/line": {
		"caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/gate/judge", "caddymodule/gate/option/waiting", "caddymodule/gate/sending",
		"caddymodule/guard", "caddymodule/internal/meter", "caddymodule/internal/timing", "filters/refuse", "filters/scope", "internal/edge",
		"internal/sale", "internal/store/queue", "internal/store/record", "internal/store/reservation",
	},
	"caddymodule/gate/order": {
		"caddymodule/forward", "caddymodule/gate/judge", "caddymodule/gate/line", "caddymodule/gate/sending", "caddymodule/internal/meter",
		"caddymodule/internal/reply", "caddymodule/internal/span", "filters", "filters/refuse", "internal/edge", "internal/sale", "internal/store/record",
		"internal/store/reservation",
	},
	"caddymodule/gate": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/gate/judge", "caddymodule/gate/line", "caddymodule/gate/option",
		"caddymodule/gate/option/probe", "caddymodule/gate/order", "caddymodule/gate/selling", "caddymodule/gate/shadow", "caddymodule/guard",
		"caddymodule/internal/directive", "filters/refuse", "filters/scope", "internal/sale",
	},
	"caddymodule/gate/try": {
		"caddymodule/gate", "caddymodule/gate/judge", "caddymodule/guard", "caddymodule/internal/request", "caddymodule/internal/saved",
		"caddymodule/operate/adminapi", "filters/attempt", "filters/outcome", "filters/scope",
	},
	"caddymodule/shopapi": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "caddymodule/internal/request",
		"filters/attempt", "filters/refuse", "internal/edge", "internal/sale", "internal/store/record", "internal/store/reservation", "internal/store/shard",
		"internal/strictjson", "token",
	},
	"caddymodule/resolve": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/forward", "caddymodule/internal/directive", "caddymodule/internal/meter",
		"caddymodule/internal/shopurl", "filters", "filters/attempt", "filters/outcome", "filters/webhook", "internal/sale", "internal/store/record", "internal/store/reservation",
		"internal/store/shard",
	},
	"caddymodule/status": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/gate/option/waiting", "caddymodule/operate/adminapi", "caddymodule/overviewcache",
		"internal/edge", "internal/sale", "token",
	},
	"caddymodule/fast": {
		"caddymodule/app", "caddymodule/gate", "caddymodule/gate/check", "caddymodule/gate/judge", "caddymodule/gate/waitlist", "caddymodule/guard",
		"caddymodule/internal/accesslog", "caddymodule/status", "filters/attempt", "internal/fastpath", "internal/fastpath/h2", "internal/sale",
	},
	"caddymodule/operate/doctor": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/fast", "caddymodule/gate/judge", "caddymodule/operate/adminapi", "internal/edge",
		"internal/edge/fence", "internal/edge/risk", "internal/ledger", "internal/ledger/recovery", "internal/sale", "internal/store/journal",
		"internal/store/queue", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/operator/serve": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/request", "caddymodule/operate/adminapi", "internal/edge", "internal/ledger",
		"internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/operator/gates": {
		"caddymodule/gate/judge", "caddymodule/gate/try", "caddymodule/internal/request", "caddymodule/operate/adminapi",
		"caddymodule/operate/operator/serve",
	},
	"caddymodule/operate/operator/journals": {
		"caddymodule/app", "caddymodule/gate", "caddymodule/internal/request", "caddymodule/operate/adminapi", "caddymodule/operate/operator/serve",
		"internal/ledger", "internal/ledger/recovery", "internal/sale", "internal/store/journal", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/operator/reservations": {
		"caddymodule/internal/request", "caddymodule/operate/adminapi", "caddymodule/operate/operator/serve", "caddymodule/shopapi", "internal/sale",
		"internal/store/record", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/operator/sales": {
		"caddymodule/edgeruntime", "caddymodule/gate/judge", "caddymodule/internal/request", "caddymodule/operate/adminapi",
		"caddymodule/operate/doctor", "caddymodule/operate/operator/serve", "internal/edge", "internal/ledger", "internal/sale", "internal/store/queue",
		"internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/operator": {
		"caddymodule/edgeruntime", "caddymodule/gate/option/accesslist", "caddymodule/internal/request", "caddymodule/operate/adminapi",
		"caddymodule/operate/doctor", "caddymodule/operate/operator/gates", "caddymodule/operate/operator/journals",
		"caddymodule/operate/operator/reservations", "caddymodule/operate/operator/sales", "caddymodule/operate/operator/serve", "internal/sale",
		"internal/store/queue", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule/operate/report": {"internal/ledger", "internal/store/journal", "internal/store/record"},
	"caddymodule/operate/dashboard": {
		"caddymodule/app", "caddymodule/edgeruntime", "caddymodule/internal/directive", "caddymodule/internal/meter", "caddymodule/operate/adminapi",
		"caddymodule/operate/doctor", "caddymodule/operate/operator", "caddymodule/operate/report", "internal/edge", "internal/sale",
		"internal/store/journal", "internal/store/queue", "internal/store/record", "internal/store/reservation", "internal/store/shard",
	},
	"caddymodule": {
		"caddymodule/app", "caddymodule/fast", "caddymodule/gate", "caddymodule/gate/check", "caddymodule/gate/waitlist", "caddymodule/guard",
		"caddymodule/operate/dashboard", "caddymodule/operate/operator", "caddymodule/resolve", "caddymodule/shopapi", "caddymodule/status",
	},
	"caddymodule/operate/demo": {
		"caddymodule", "caddymodule/app", "caddymodule/internal/terminal", "internal/edge", "internal/sale", "internal/shop",
		"internal/stampede", "internal/store/reservation", "internal/store/shard", "token",
	},
	"caddymodule/operate/selfcheck": {
		"caddymodule", "caddymodule/app", "internal/edge", "internal/learn", "internal/sale", "internal/store/reservation",
	},
	"caddymodule/operate/rehearse": {
		"caddymodule/internal/saved", "caddymodule/operate/adminapi", "internal/sale", "internal/stampede", "internal/store/journal",
		"internal/store/record", "internal/store/reservation",
	},
	"caddymodule/operate/capacity": nil,
	"caddymodule/command": {
		"caddymodule", "caddymodule/app", "caddymodule/app/journals", "caddymodule/internal/shopdb", "caddymodule/internal/terminal", "caddymodule/operate/adminapi",
		"caddymodule/operate/capacity", "caddymodule/operate/demo", "caddymodule/operate/rehearse", "caddymodule/operate/selfcheck", "filters/list", "filters/refuse", "internal/edge", "internal/learn", "internal/ledger/recovery",
		"internal/sale", "internal/stampede", "internal/store/backup", "internal/store/record", "internal/store/reservation", "internal/store/shard", "lua",
	},

	"": {"caddymodule/command", "caddymodule/ledgers/mysql", "caddymodule/ledgers/postgres", "caddymodule/ledgers/sqlite", "caddymodule/mirror", "caddymodule/movein", "caddymodule/notify"},
}

// inMap reports whether a package is one of those that arrows names.
func inMap(name string) bool {
	for _, other := range []string{"bench", "cmd", "e2e", "examples", "internal/test/auditor", "internal/test/chaos", "internal/test/chromium", "internal/test/draw", "internal/test/ledgertest", "internal/test/mariadbtest", "internal/test/model", "internal/test/pgtest", "internal/test/ports", "internal/test/redistest", "internal/test/reference",
		"internal/test/spawn", "internal/shop", "caddymodule/internal/sitetest", "internal/stampede", "internal/test/stocktest"} {
		if name == other || strings.HasPrefix(name, other+"/") {
			return false
		}
	}
	return true
}

// TestArrows compares the map with what go list says, both ways: an arrow that is not in the
// map is new, one that is gone must leave the map.
func TestArrows(t *testing.T) {
	graph := importGraph(t)
	seen := 0
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		name := strings.TrimPrefix(strings.TrimPrefix(pkg, own), "/")
		if !matches(pkg, own+"/...") || !inMap(name) {
			continue
		}
		seen++
		want, known := arrows[name]
		if !known {
			t.Errorf("%s is not in the map: say what it may import", pkg)
			continue
		}
		var have []string
		for _, path := range graph[pkg] {
			if matches(path, own+"/...") {
				have = append(have, strings.TrimPrefix(strings.TrimPrefix(path, own), "/"))
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s imports %q of this module, the map says %q", pkg, have, want)
		}
	}
	if seen != len(arrows) {
		t.Errorf("the map has %d packages, go list knows %d", len(arrows), seen)
	}
}

// TestTheRootBringsAll: a build that imports the root has the modules, the commands and
// what a build may leave out. No other package imports them, so nothing else would miss them.
func TestTheRootBringsAll(t *testing.T) {
	graph := importGraph(t)
	for _, pkg := range []string{"./caddymodule", "./caddymodule/command", "./caddymodule/operate/demo", "./caddymodule/fast", "./caddymodule/operate/operator", "./caddymodule/ledgers/sqlite", "./caddymodule/ledgers/mysql", "./caddymodule/ledgers/postgres", "./caddymodule/mirror", "./caddymodule/movein", "./caddymodule/notify"} {
		if shortest(graph, own, []string{pkg}) == nil {
			t.Errorf("importing the root does not bring %s", pkg)
		}
	}
}

// TestTheAuditorKnowsNothing: the auditor and the packages below it import one another and
// the standard library, and nothing else, in their tests too. What it shares with the
// product cannot show that the product is wrong.
func TestTheAuditorKnowsNothing(t *testing.T) {
	const auditor = own + "/internal/test/auditor"
	out, err := exec.Command("go", "list", "-buildvcs=false", "-json=ImportPath,Imports,TestImports,XTestImports", "./internal/test/auditor/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var pkg struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, imported := range slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports) {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !matches(imported, auditor+"/...") || imported == "C" {
				t.Errorf("%s imports %s: the auditor uses the standard library alone", pkg.ImportPath, imported)
			}
		}
	}
	if packages < 5 {
		t.Errorf("go list knows %d packages of the auditor", packages)
	}
}

// TestTokenBringsNoOtherModule: a shop that verifies tokens gets no module with them, and of
// this one only what reads them.
func TestTokenBringsNoOtherModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-buildvcs=false", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./token").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{own + "/internal/jwks", own + "/internal/strictjson", own + "/token"}
	if got := strings.Fields(string(out)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("importing token brings %q, not %q", got, want)
	}
}

// TestDirectionsAreEnforced breaks each rule once, directly and through a
// package in between, because a rule that nothing can break protects nothing.
func TestDirectionsAreEnforced(t *testing.T) {
	const between = "example.com/between"
	for _, d := range directions {
		for _, forbidden := range d.forbidden {
			from, to := sample(d.pkg), sample(forbidden)
			for name, graph := range map[string]map[string][]string{
				"directly": {from: {"fmt", to}},
				"between":  {from: {between}, between: {to}},
			} {
				if got := d.check(graph); len(got) != 1 || !strings.Contains(got[0], to) || !strings.Contains(got[0], d.why) {
					t.Errorf("%s imports %s (%s): reported %q", from, to, name, got)
				}
			}
		}
	}
}

// check returns a sentence for each of the rule's packages that reaches a
// forbidden one.
func (d direction) check(graph map[string][]string) []string {
	var broken []string
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		if !matches(pkg, d.pkg) || slices.ContainsFunc(d.except, func(p string) bool { return matches(pkg, p) }) {
			continue
		}
		if chain := shortest(graph, pkg, d.forbidden); chain != nil {
			broken = append(broken, fmt.Sprintf("%s\nforbidden: %s", strings.Join(chain, "\n\timports "), d.why))
		}
	}
	return broken
}

// shortest finds the shortest chain of imports from a package to one that
// matches a pattern; nil: there is none.
func shortest(graph map[string][]string, from string, patterns []string) []string {
	seen := map[string]bool{from: true}
	for chains := [][]string{{from}}; len(chains) > 0; chains = chains[1:] {
		chain := chains[0]
		for _, next := range graph[chain[len(chain)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(chain), next)
			if slices.ContainsFunc(patterns, func(p string) bool { return matches(next, p) }) {
				return longer
			}
			chains = append(chains, longer)
		}
	}
	return nil
}

func matches(pkg, pattern string) bool {
	root, below := strings.CutSuffix(absolute(pattern), "/...")
	return pkg == root || below && strings.HasPrefix(pkg, root+"/")
}

// absolute turns "./internal/sale" into the import path of that package.
func absolute(pattern string) string {
	if rest, ok := strings.CutPrefix(pattern, "."); ok {
		return own + rest
	}
	return pattern
}

// sample is an import path that matches the pattern.
func sample(pattern string) string {
	switch pattern {
	case "./...", "./caddymodule/...": // whose roots are excepted
		return absolute(strings.TrimSuffix(pattern, "...")) + "any"
	}
	return strings.TrimSuffix(absolute(pattern), "/...")
}

// TestImportGroups: the imports of a file are one declaration with up to three groups, the standard
// library, other modules and this one, each sorted by gofmt.
func TestImportGroups(t *testing.T) {
	group := func(imported string) int {
		first, _, _ := strings.Cut(imported, "/")
		switch {
		case imported == own || strings.HasPrefix(imported, own+"/"):
			return 2
		case strings.Contains(first, "."):
			return 1
		}
		return 0
	}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata") {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if len(file.Decls) > 1 {
			t.Errorf("%s has %d import declarations: write one", name, len(file.Decls))
		}
		before, line := -1, 0
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			begin, now := set.Position(spec.Pos()).Line, group(imported)
			if spec.Doc != nil {
				begin = set.Position(spec.Doc.Pos()).Line
			}
			if together := begin == line+1; before >= 0 && (now < before || together != (now == before)) {
				t.Errorf("%s: %s is in the wrong group: the standard library, other modules, this one", name, imported)
			}
			before, line = now, set.Position(spec.End()).Line
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
