package option

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
)

// Filters are what the options of a judge are compiled to: what reads attempts, and what refuses them.
type Filters struct {
	// Operations tells which requests are attempts; nil: every request is one.
	Operations *operation.Finder
	Reader     *attempt.Reader
	Refuser    *refuse.Refuser
	Lists      accesslist.DenyAllowLists
	Rates      ratelimit.Set
	Challenge  pow.Challenger
	// Lookup asks the shop what an attempt is about; nil: the request says it.
	Lookup *inquiry.Inquiry
	// Credentials tell which requests wait for each other; nil: none does.
	Credentials *session.Credentials
	// Bearer verifies tokens; nil: there is no JWT. Requests in flight use it after Close.
	Bearer *jwt.Verifier
}

// Open compiles options, and acquires what they share with other configurations. Close releases it, even if Open fails
// halfway.
func (f *Filters) Open(ctx caddy.Context, s *Setup) error {
	keys, err := ratelimit.Keys(s.Rates)
	if err != nil {
		return err
	}
	if len(s.JWT) > 0 {
		if f.Bearer, err = s.JWT.Open(); err != nil {
			return fmt.Errorf("jwt: %w", err)
		}
	}
	if f.Operations, err = s.Options.Open(s.expressions()); err != nil {
		return err
	}
	if f.Reader, err = s.newReader(keys); err != nil {
		return err
	}
	if err := f.openLookup(s); err != nil {
		return err
	}
	if err := f.Credentials.Provision(ctx, s.OneAtATime); err != nil {
		return err
	}
	if err := f.openRefusals(s); err != nil {
		return err
	}
	return errors.Join(f.Rates.Open(s.Name, s.Rates, keys), f.Challenge.Open(s.Challenge, s.Name, s.OnlyChecks()))
}

// openRefusals prepares refusals, deny and allow.
func (f *Filters) openRefusals(s *Setup) (err error) {
	if f.Refuser, err = s.newRefuser(); err != nil {
		return err
	}
	f.Refuser.AsksToken = len(s.JWT) > 0
	if err := f.Lists.Open(s.App.NamedLists(), s.Deny, s.Allow); err != nil {
		return err
	}
	if s.OtherItems == "pass" {
		s.App.WantOthers()
	}
	return cmp.Or(s.checkOtherItems(), s.checkSlots())
}

// Close releases what Open has acquired.
func (f *Filters) Close() error {
	f.Lookup.Close()
	return errors.Join(f.Rates.Close(), f.Challenge.Close(), f.Bearer.Close())
}

// Check is the part of Open that depends on options alone.
func (f *Filters) Check(s *Setup) error {
	keys, err := ratelimit.Keys(s.Rates)
	if err != nil {
		return err
	}
	if f.Reader, err = s.newReader(keys); err != nil {
		return err
	}
	if err := s.Options.Check(s.expressions()); err != nil {
		return err
	}
	if err := s.checkOtherItems(); err != nil {
		return err
	}
	if _, err := guard.QueryPaths(s.AlsoQuery); err != nil {
		return err
	}
	if err := f.openLookup(s); err != nil {
		return err
	}
	if _, err := s.newRefuser(); err != nil {
		return err
	}
	return s.checkSlots()
}

// openLookup prepares lookup and one_at_a_time.
func (f *Filters) openLookup(s *Setup) (err error) {
	if f.Credentials, err = s.OneAtATime.Compile(); err != nil {
		return err
	}
	reads := f.Reader.Needs().Has(attempt.NeedLookup) || len(f.Credentials.Looked()) > 0
	switch {
	case s.Lookup == nil && reads:
		return errors.New("{lookup.…}: say what the shop is asked, such as `lookup GET http://shop:3000/cart`")
	case s.Lookup == nil:
		return nil
	case !reads && s.OnlyChecks() && !s.Enters:
		return errors.New("lookup: one_at_a_time reads no id of a cart in what the shop answers: write `one_at_a_time {lookup.cart.id}`, or leave lookup out")
	case !reads:
		return errors.New("lookup: no value reads what the shop answers: write `lines {lookup.items} sku quantity`, or leave lookup out")
	}
	if f.Lookup, err = s.Lookup.Compile("the lookup", "jwt."); err != nil {
		return err
	}
	if err := cmp.Or(f.turnsNameNothing(s), f.KnowsNames("the lookup", f.Lookup)); err != nil {
		return err
	}
	if f.Lookup.ByRef() {
		ref, err := attempt.CompileAll(s.Ref...)
		if err != nil || len(s.Ref) == 0 || ref.Needs().Has(attempt.NeedLookup) {
			return errors.New("lookup: {ref} needs a ref that the request itself has, such as `ref {path.2}`")
		}
	}
	return nil
}

// turnsNameNothing rejects a lookup that identifies the cart by a value which only attempts have, where other requests
// wait for the turn of their cart too.
func (f *Filters) turnsNameNothing(s *Setup) error {
	if len(f.Credentials.Looked()) == 0 || len(f.Lookup.Names()) == 0 || !s.OnlyTurns() && !s.Options.Any() {
		return nil
	}
	return errors.New("one_at_a_time {lookup.…}: the cart of a request that is no attempt is looked up too, and {" + f.Lookup.Names()[0] + "} is known of attempts only: " +
		"let the shop find the cart by the header of the request, or write {path.…} where the path names it")
}

// KnowsNames checks the placeholders of a question. It returns an error about one that the gate cannot fill in, in
// which what names the option that asks.
type KnowsNames func(what string, i *inquiry.Inquiry) error

// KnowsNames is a [KnowsNames] by the values and the lookup of these filters.
func (f *Filters) KnowsNames(what string, i *inquiry.Inquiry) error {
	for _, name := range i.Names() {
		switch {
		case strings.HasPrefix(name, "jwt.") && !f.Reader.Needs().Has(attempt.NeedJWT):
			return fmt.Errorf("%s: {%s} needs jwt, and a value of the gate that reads a claim, such as buyer {jwt.sub}", what, name)
		case strings.HasPrefix(name, "lookup.") && f.Lookup == nil:
			return fmt.Errorf("%s: {%s} needs a lookup", what, name)
		}
	}
	return nil
}
