package sale

import (
	"fmt"
	"strings"
)

// IdentityRules say which spellings are one person, where that is not the same for every shop. The zero
// IdentityRules guess nothing. All that counts or lists the same persons needs the same rules: all
// edges on one Redis, and for as long as their sales are open.
type IdentityRules struct {
	home                   *country
	buyerEmail, ignoreTags bool
}

// IdentityOptions are what an operator says about identities.
type IdentityOptions struct {
	// Country is the home of phone numbers without a country's code, such as DE. Default: none is guessed.
	Country string
	// Buyer is name or email. Default: name.
	Buyer string
	// EmailTags is kept or ignored: whether a+shop@x.test is another person than a@x.test. Default: kept.
	EmailTags string
}

// Rules checks the options and compiles them.
func (o IdentityOptions) Rules() (r IdentityRules, err error) {
	switch {
	case o.Buyer != "" && o.Buyer != "name" && o.Buyer != "email":
		return r, fmt.Errorf("buyer %q: there are name and email", o.Buyer)
	case o.EmailTags != "" && o.EmailTags != "kept" && o.EmailTags != "ignored":
		return r, fmt.Errorf("email_tags %q: there are kept and ignored", o.EmailTags)
	}
	r = IdentityRules{buyerEmail: o.Buyer == "email", ignoreTags: o.EmailTags == "ignored"}
	if o.Country != "" {
		r.home, err = findCountry(o.Country)
	}
	return r, err
}

// String writes the rules as a Caddyfile does; empty: nothing is guessed. Equal rules have one text.
func (r IdentityRules) String() string {
	var words []string
	if r.home != nil {
		words = append(words, "country "+r.home.name)
	}
	if r.buyerEmail {
		words = append(words, "buyer email")
	}
	if r.ignoreTags {
		words = append(words, "email_tags ignored")
	}
	return strings.Join(words, ", ")
}

// BuyerEmail reports whether buyers are e-mail addresses.
func (r IdentityRules) BuyerEmail() bool { return r.buyerEmail }
