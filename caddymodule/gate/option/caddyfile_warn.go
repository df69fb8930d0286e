package option

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// warnRisks warns about the risks of a judge, which knows the global option and the matchers beside it.
func warnRisks(w directive.Warner, s *Setup, matchers caddy.ModuleMap) {
	s.around = beside(matchers)
	for _, risk := range s.Risks() {
		w.Warn(risk.Text)
	}
}

// warnMatchers warns about matchers by which a client can let its order pass the gate, and about paths
// beside it that need care.
func warnMatchers(w directive.Warner, s *Setup, matchers caddy.ModuleMap) {
	warnings := guard.Avoidable(matchers)
	if prefixes, asks := s.Prefixes(); asks {
		warnings = append(warnings, prefixes.In(matchers)...)
	}
	for _, warning := range warnings {
		w.Warn(warning)
	}
}

func hasPlaceholder(expr string) bool { return strings.ContainsAny(expr, "{}") }

// expressions returns what the gate reads from a request, as it is written: its values and the
// array of its lines.
func (s *Setup) expressions() []string {
	all := s.Values()
	if s.LinesFrom != nil {
		all = append(all, s.LinesFrom.Array)
	}
	return all
}

// Values returns the values that the gate reads from a request, as they are written.
func (s *Setup) Values() []string {
	all := slices.Concat(s.Sale, s.Buyer)
	for _, l := range s.Lines {
		all = slices.Concat(all, l.SKU, l.Quantity)
	}
	all = slices.Concat(all, s.Region, s.Ref, s.Idempotency)
	for _, kind := range identityKinds {
		all = append(all, s.Identities[kind]...)
	}
	for _, r := range s.Rates {
		all = append(all, r.Key...)
	}
	return all
}

// identityKinds are in the order of the warnings.
var identityKinds = []string{"phone", "email", "address", "device", "ip"}

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
