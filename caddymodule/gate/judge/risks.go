package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

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
func (j *Judge) Risks() (risks []OptionRisk) {
	add := func(about string, texts ...string) {
		for _, text := range texts {
			risks = append(risks, OptionRisk{about, text})
		}
	}
	add("method", j.methodRisks()...)
	add("paths", j.exactPaths()...)
	if j.Seller != nil {
		risks = append(risks, j.Seller.SellingRisks()...)
	}
	if j.Enters {
		add("buyer", j.JWT.Risks(j.Buyer)...)
		add("waitlist", j.placeRisks()...)
	} else {
		add("buyer", j.buyerRisks()...)
	}
	add("values", j.valueRisks()...)
	add("lines", j.lineRisks()...)
	add("identities", j.emailRisks()...)
	add("identities", j.unverifiedRisks()...)
	add("rate_redis", j.rateRisks()...)
	add("jwt", j.JWT.KeyRisks()...)
	return risks
}

// logRisks logs the risks when the configuration loads.
func (j *Judge) logRisks() {
	for _, risk := range j.Risks() {
		j.log.Warn(risk.Text, zap.String("about", risk.About))
	}
}

// methodRisks warn about a gate that takes GET requests for attempts to buy.
func (j *Judge) methodRisks() []string {
	if j.around.methods || j.Options.Any() || j.onlyTurns() || j.Enters {
		return nil
	}
	return []string{"no matcher restricts the method, so every matching request is an attempt to buy, a GET too: " +
		"add `method POST` to the gate's matcher"}
}

// exactPaths warn about a gate that reads operations at one exact path: servers of GraphQL answer below
// their path too.
func (j *Judge) exactPaths() (risks []string) {
	if len(j.GraphQL) == 0 {
		return nil
	}
	for _, path := range j.around.paths {
		if !strings.HasSuffix(path, "*") {
			risks = append(risks, "the gate's path "+path+" is exact, and a server of GraphQL may answer at "+path+"/x too: write "+path+"*")
		}
	}
	return risks
}

// buyerRisks warn about a buyer that is a claim of a token, and about one that every client can choose.
func (j *Judge) buyerRisks() []string {
	risks := j.JWT.Risks(j.Buyer)
	at := slices.IndexFunc(j.Buyer, byClient)
	if at < 0 {
		return risks
	}
	buyer, instead := j.Buyer[at], ", or verify the shop's bearer token with jwt"
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
func (j *Judge) unverifiedRisks() []string {
	if j.OnlyChecks() || len(j.Identities) == 0 || verified(j.Buyer) {
		return nil
	}
	for _, values := range j.Identities {
		if verified(values) {
			return nil
		}
	}
	kinds := slices.Sorted(maps.Keys(j.Identities))
	add, with := "add", "buyer"
	if _, has := j.Identities["ip"]; has {
		add = "write"
	}
	if at := slices.IndexFunc(kinds, func(kind string) bool { return kind != "ip" }); at >= 0 {
		with = kinds[at]
	}
	return []string{fmt.Sprintf("no identity of this gate is verified (%s), so a client can name other buyers and use up their limits: "+
		"take the buyer from your authentication or from jwt, or %s `identity ip {client_ip}`, and let limits count it too, such as `per: [%s, ip]`", strings.Join(kinds, ", "), add, with)}
}

// rateRisks warn about shared rates that are counted in the Redis of the stock.
func (j *Judge) rateRisks() []string {
	if j.app.RateRedis != nil || !slices.ContainsFunc(j.Rates, ratelimit.Rate.Grows) {
		return nil
	}
	return []string{"a shared rate has keys that clients choose, and each takes 200 bytes of the redis that holds the stock: " +
		"give the rates a redis of their own with `rate_redis` in the global options of stockgate"}
}
