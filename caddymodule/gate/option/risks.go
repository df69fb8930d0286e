package option

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
)

// An OptionRisk is something that a configuration may say and rarely means.
type OptionRisk struct {
	// About names a part of the gate, such as buyer or lines.
	About string
	// Text says what may happen, and what to write instead.
	Text string
}

// Risks returns the risks that the judge's options and the matchers around it have. Adapting a Caddyfile,
// loading a configuration and the doctor warn about them.
func (s *Setup) Risks() (risks []OptionRisk) {
	add := func(about string, texts ...string) {
		for _, text := range texts {
			risks = append(risks, OptionRisk{about, text})
		}
	}
	add("method", s.methodRisks()...)
	add("paths", s.exactPaths()...)
	if s.Own != nil {
		risks = append(risks, s.Own.SellingRisks()...)
	}
	if s.Enters {
		add("buyer", s.JWT.Risks(s.Buyer)...)
		add("waitlist", s.placeRisks()...)
	} else {
		add("buyer", s.buyerRisks()...)
	}
	add("values", s.valueRisks()...)
	add("lines", s.lineRisks()...)
	add("identities", s.emailRisks()...)
	add("identities", s.unverifiedRisks()...)
	add("rate_redis", s.rateRisks()...)
	add("jwt", s.JWT.KeyRisks()...)
	return risks
}

// methodRisks warn about a gate that takes GET requests for attempts to buy.
func (s *Setup) methodRisks() []string {
	if s.around.methods || s.Options.Any() || s.OnlyTurns() || s.Enters {
		return nil
	}
	return []string{"no matcher restricts the method, so every matching request is an attempt to buy, a GET too: " +
		"add `method POST` to the gate's matcher"}
}

// exactPaths warn about a gate that reads operations at one exact path: servers of GraphQL answer below
// their path too.
func (s *Setup) exactPaths() (risks []string) {
	if len(s.GraphQL) == 0 {
		return nil
	}
	for _, path := range s.around.paths {
		if !strings.HasSuffix(path, "*") {
			risks = append(risks, "the gate's path "+path+" is exact, and a server of GraphQL may answer at "+path+"/x too: write "+path+"*")
		}
	}
	return risks
}

// buyerRisks warn about a buyer that is a claim of a token, and about one that every client can choose.
func (s *Setup) buyerRisks() []string {
	risks := s.JWT.Risks(s.Buyer)
	at := slices.IndexFunc(s.Buyer, byClient)
	if at < 0 {
		return risks
	}
	buyer, instead := s.Buyer[at], ", or verify the shop's bearer token with jwt"
	switch {
	case typedIntoCart(buyer):
		return append(risks, "the buyer is "+buyer+", which guests type into the cart, so that a client can buy without limit in other names: "+
			"read the id of a customer who is signed in, or limit a second identity together with it, such as `identity ip {client_ip}`")
	case strings.Contains(buyer, "header."):
		instead = ", or make sure that a proxy before this one sets the header"
	}
	return append(risks, "the buyer is taken from "+buyer+", which a client can set to anything, and so buy without limit: "+
		"take the buyer from your authentication, such as {http.auth.user.id}"+instead)
}

// unverifiedRisks warn about a gate where no value is verified: a client can use up the limits of other
// buyers at no cost.
func (s *Setup) unverifiedRisks() []string {
	if s.OnlyChecks() || len(s.Identities) == 0 || verified(s.Buyer) {
		return nil
	}
	for _, values := range s.Identities {
		if verified(values) {
			return nil
		}
	}
	kinds := slices.Sorted(maps.Keys(s.Identities))
	add, with := "add", "buyer"
	if _, has := s.Identities["ip"]; has {
		add = "write"
	}
	if at := slices.IndexFunc(kinds, func(kind string) bool { return kind != "ip" }); at >= 0 {
		with = kinds[at]
	}
	return []string{fmt.Sprintf("no identity of this gate is verified (%s), so a client can name other buyers and use up their limits: "+
		"take the buyer from your authentication or from jwt, or %s `identity ip {client_ip}`, and let limits count it too, such as `per: [%s, ip]`", strings.Join(kinds, ", "), add, with)}
}

// rateRisks warn about shared rates that are counted in the Redis of the stock.
func (s *Setup) rateRisks() []string {
	if s.App.RateRedis != nil || !slices.ContainsFunc(s.Rates, ratelimit.Rate.Grows) {
		return nil
	}
	return []string{"a shared rate has keys that clients choose, and each takes 200 bytes of the redis that holds the stock: " +
		"give the rates a redis of their own with `rate_redis` in the global options of stockgate"}
}

// placeRisks warn about identities of people who enter that a client can set to anything.
func (s *Setup) placeRisks() (risks []string) {
	for _, kind := range append([]string{"buyer"}, identityKinds...) {
		values := s.identity(kind)
		at := slices.IndexFunc(values, byClient)
		if at < 0 {
			continue
		}
		named, unless := "the buyer", ""
		if kind != "buyer" {
			named, unless = "identity "+kind, "; it counts only where a limit of the sale names "+kind
		}
		risks = append(risks, named+" is taken from "+values[at]+", which a client can set to anything: a stranger can enter in the name of another person, who then has no other place, "+
			"and can take the units that are offered to that person: take it from your authentication, such as {http.auth.user.id}, or from jwt"+unless)
	}
	return risks
}
