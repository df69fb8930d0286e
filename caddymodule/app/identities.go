package app

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/sale"
)

// IdentitySpellings say which spellings of an identity are one person.
type IdentitySpellings struct {
	// Country is the country (ISO 3166) of phone numbers without its code: with `DE`, `0171 1234567` is `+49 171 1234567`.
	// Default: none is guessed.
	Country string `json:"country,omitempty"`
	// Buyer: `name` compares buyers byte for byte; with `email`, `A@x.test` is `a@x.test`. Default: `name`.
	Buyer string `json:"buyer,omitempty"`
	// EmailTags: with `ignored`, `ann+shop@x.test` is `ann@x.test`, though some providers have two customers there.
	// Default: `kept`.
	EmailTags string `json:"email_tags,omitempty"`
}

// rules checks the options and compiles them.
func (o *IdentitySpellings) rules() (sale.IdentityRules, error) {
	if o == nil {
		return sale.IdentityRules{}, nil
	}
	return sale.IdentityOptions(*o).Rules()
}

// IdentityRules are the rules of the configuration for identities.
func (a *App) IdentityRules() (sale.IdentityRules, error) {
	rules, err := a.Identities.rules()
	if err != nil {
		return rules, fmt.Errorf("identities: %w", err)
	}
	return rules, nil
}

// NamesBuyers reports whether the configuration says that buyers are compared byte for byte.
func (a *App) NamesBuyers() bool { return a.Identities != nil && a.Identities.Buyer == "name" }

// noteIdentities warns where a reload has changed by what rules persons are told apart while sales are open.
func (a *App) noteIdentities(d *edgeruntime.Runtime) error {
	rules, err := a.IdentityRules()
	if err != nil {
		return err
	}
	var open []string
	for l := range d.Catalogue().All {
		if l.Status == sale.Open {
			open = append(open, l.Sale.ID)
		}
	}
	if otherwise := d.ReadBy(rules.String(), open); len(otherwise) > 0 {
		a.log.Warn("the option `identities` has changed while sales are open: "+RulesChanged, zap.Strings("sales", otherwise), zap.String("identities", rules.String()))
	}
	a.tellRules(d, rules)
	return nil
}

// RulesChanged is the risk of other rules for identities in the middle of a sale.
const RulesChanged = "a person whose identity is now written otherwise starts over with their limits and unpaid holds, and entries of lists in Redis stay as they were added; " +
	"go back to the former rules until the sale is closed, and import such lists again after a change"

// readIdentities reads the option identities. Wrong words are errors here, so that they name file and line.
func (a *App) readIdentities(d *caddyfile.Dispenser, usage string) error {
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	o := new(IdentitySpellings)
	a.Identities = o
	checked := func(into *string) func(*caddyfile.Dispenser, string) error {
		return func(d *caddyfile.Dispenser, usage string) error {
			if err := directive.Text(into)(d, usage); err != nil {
				return err
			}
			if _, err := o.rules(); err != nil {
				return d.WrapErr(err)
			}
			return nil
		}
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"country":    {Usage: "country <letters>", Read: checked(&o.Country)},
		"buyer":      {Usage: "buyer name|email", Read: checked(&o.Buyer)},
		"email_tags": {Usage: "email_tags kept|ignored", Read: checked(&o.EmailTags)},
	})
}
