package gate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// warnExact warns about a gate that reads operations at one exact path: servers of GraphQL
// answer below their path too.
func warnExact(w directive.Warner, j *Judge, matchers caddy.ModuleMap) {
	var paths []string
	if len(j.GraphQL) == 0 || json.Unmarshal(matchers["path"], &paths) != nil {
		return
	}
	for _, path := range paths {
		if !strings.HasSuffix(path, "*") {
			w.Warn("the gate's path " + path + " is exact, and a server of GraphQL may answer at " + path + "/x too: write " + path + "*")
		}
	}
}

// warnShaped warns about a rule that reads what a client can shape: it may rename every field
// below data, and so make the answer to one field look like the answer to another.
func warnShaped(w directive.Warner, g *Gate) {
	if len(g.GraphQL) == 0 || g.Ask != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.Answers)) {
		for _, test := range g.Answers[name].JSON {
			if test.Path == "data" || strings.HasPrefix(test.Path, "data.") {
				w.Warn("@" + name + " reads " + test.Path + " in the answer of a GraphQL server, where the client chooses the names of fields and can make a sold order look released: " +
					"ask the shop with `outcome ask`, let it confirm with `outcome backend`, or read only errors")
				break
			}
		}
	}
}

// warnMethod warns about a gate that takes GET requests for attempts to buy.
func warnMethod(w directive.Warner, j *Judge, matchers caddy.ModuleMap) {
	if j.Options.Any() || j.onlyTurns() {
		return
	}
	for name, raw := range matchers {
		nested := name == "not" || name == "expression"
		if name == "method" || nested && bytes.Contains(raw, []byte("method")) {
			return
		}
	}
	w.Warn("no matcher restricts the method, so every matching request is an attempt to buy, a GET too: " +
		"add `method POST` to the gate's matcher")
}

// warnMatchers warns about matchers by which a client can let its order pass the gate, and about paths
// beside it that need care.
func warnMatchers(w directive.Warner, j *Judge, matchers caddy.ModuleMap) {
	warnings := guard.Avoidable(matchers)
	if prefixes, asks := j.prefixes(); asks {
		warnings = append(warnings, prefixes.In(matchers)...)
	}
	for _, warning := range warnings {
		w.Warn(warning)
	}
}

// warnBuyer warns about a buyer that every client can choose, and about what BuyerRisks finds.
func warnBuyer(w directive.Warner, j *Judge) {
	for _, risk := range j.BuyerRisks() {
		w.Warn(risk)
	}
	values := j.Buyer
	at := slices.IndexFunc(values, byClient)
	if at < 0 {
		return
	}
	if typedIntoCart(values[at]) {
		w.Warn("the buyer is " + values[at] + ", which guests type into the cart, so that a client can buy without limit in other names: " +
			"read the id of a customer who is signed in, or limit a second identity together with it, such as `identity ip {client_ip}`")
		return
	}
	instead := ", or verify the shop's bearer token with jwt"
	if strings.Contains(values[at], "header.") {
		instead = ", or make sure that a proxy before this one sets the header"
	}
	w.Warn("the buyer is taken from " + values[at] + ", which a client can set to anything, and so buy without limit: " +
		"take the buyer from your authentication, such as {http.auth.user.id}" + instead)
}

// warnValues warns about what ValueRisks finds.
func warnValues(w directive.Warner, j *Judge) {
	for _, risk := range j.ValueRisks() {
		w.Warn(risk)
	}
}

// warnLines warns about lines that reserve, or refuse, what is probably not meant.
func warnLines(w directive.Warner, j *Judge) {
	for _, risk := range j.LineRisks() {
		w.Warn(risk)
	}
}

// warnOutcomes warns about what OutcomeRisks finds.
func warnOutcomes(w directive.Warner, g *Gate) {
	for _, risk := range g.OutcomeRisks() {
		w.Warn(risk)
	}
}

func hasPlaceholder(expr string) bool { return strings.ContainsAny(expr, "{}") }

// expressions returns what the gate reads from a request, as it is written: its values and the
// array of its lines.
func (j *Judge) expressions() []string {
	all := j.values()
	if j.LinesFrom != nil {
		all = append(all, j.LinesFrom.Array)
	}
	return all
}

// values returns the values that the gate reads from a request, as they are written.
func (j *Judge) values() []string {
	all := slices.Concat(j.Sale, j.Buyer)
	for _, l := range j.Lines {
		all = slices.Concat(all, l.SKU, l.Quantity)
	}
	all = slices.Concat(all, j.Region, j.Ref, j.Idempotency)
	for _, kind := range identityKinds {
		all = append(all, j.Identities[kind]...)
	}
	for _, r := range j.Rates {
		all = append(all, r.Key...)
	}
	return all
}

// identityKinds are in the order of the warnings.
var identityKinds = []string{"phone", "email", "address", "device", "ip"}

// warnIdentities warns about a gate where no value is verified: a client can use up the
// limits of other buyers at no cost.
func warnIdentities(w directive.Warner, g *Gate) {
	if len(g.Identities) == 0 || verified(g.Buyer) {
		return
	}
	for _, values := range g.Identities {
		if verified(values) {
			return
		}
	}
	kinds := slices.Sorted(maps.Keys(g.Identities))
	add, with := "add", "buyer"
	if _, has := g.Identities["ip"]; has {
		add = "write"
	}
	if at := slices.IndexFunc(kinds, func(kind string) bool { return kind != "ip" }); at >= 0 {
		with = kinds[at]
	}
	w.Warn("no identity of this gate is verified (" + strings.Join(kinds, ", ") + "), so a client can name other buyers and use up their limits: " +
		"take the buyer from your authentication or from jwt, or " + add + " `identity ip {client_ip}`, and let limits count it too, such as `per: [" + with + ", ip]`")
}

// warnShared warns about shared rates that are counted in the Redis of the stock.
func warnShared(w directive.Warner, j *Judge) {
	if !slices.ContainsFunc(j.Rates, ratelimit.Rate.Grows) {
		return
	}
	if global, ok := w.Option("stockgate").(httpcaddyfile.App); ok {
		var configured app.App
		if json.Unmarshal(global.Value, &configured) != nil || configured.RateRedis != nil {
			return
		}
	}
	w.Warn("a shared rate has keys that clients choose, and each takes 200 bytes of the redis that holds the stock: " +
		"give the rates a redis of their own with `rate_redis` in the global options of stockgate")
}

// warnGuard warns about a gate that an unusual path can avoid. A named route is a block of
// its own: the sites that invoke it are not known here.
func warnGuard(w directive.Warner) {
	block := w.Block()
	switch {
	case block == nil:
	case block.IsNamedRoute:
		// Its tokens are one directive, with the route's name.
		if len(block.Segments) == 0 || !hasGuard(directive.Subdirectives(block.Segments[0])) {
			w.Warn("this named route has no stockgate_guard: add it here, or make sure that each site which invokes the route has it")
		}
	case !hasGuard(block.Segments):
		w.Warn("the site has no stockgate_guard for all its requests, so its gate can be avoided by paths that the shop reads otherwise: " +
			"add `stockgate_guard` to the site, outside of blocks that have a matcher")
	}
}

// checkPlaces refuses a queue whose buyers cannot ask where their orders stand. The sites that
// invoke a named route are not known here.
func checkPlaces(h httpcaddyfile.Helper, g *Gate) error {
	block := directive.BlockOf(&h)
	if g.Queue == nil || block == nil || block.IsNamedRoute {
		return nil
	}
	for _, s := range block.Segments {
		if slices.ContainsFunc(s, func(t caddyfile.Token) bool { return t.Text == "stockgate_status" }) {
			return nil
		}
	}
	return h.Err("queue: buyers ask at /orders of stockgate_status where their orders stand: add `stockgate_status` to the site")
}

// hasGuard looks for a guard that every request of a block passes: in the block itself, or
// in a route or handle there that has no matcher.
func hasGuard(block []caddyfile.Segment) bool {
	for _, s := range block {
		switch s.Directive() {
		case "stockgate_guard":
			return true
		case "route", "handle":
			if hasGuard(directive.Subdirectives(s)) {
				return true
			}
		}
	}
	return false
}
