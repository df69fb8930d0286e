package option

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/filters/attempt"
)

// newReader compiles the values that are read from an attempt. rates has the keys of its rates.
func (s *Setup) newReader(rates []attempt.RateKey) (*attempt.Reader, error) {
	if s.Body != "" && s.Body != "checked" && s.Body != "ignored" {
		return nil, fmt.Errorf("body %q: there are checked and ignored", s.Body)
	}
	rules, err := s.App.IdentityRules()
	if err != nil {
		return nil, err
	}
	spec := attempt.Spec{Rules: rules, MaxBody: s.MaxBody, BodyIgnored: s.Body == "ignored", RefShared: s.RefShared, Rates: rates, Anonymous: s.OnlyChecks(), Identities: make(map[string]attempt.Values)}
	if len(s.JWT) > 0 {
		if err := s.JWT.Check(); err != nil {
			return nil, fmt.Errorf("jwt: %w", err)
		}
		spec.Bearer = &attempt.Bearer{Cookie: s.JWT.Cookie()}
	}
	compile := func(name string, into *attempt.Values, exprs []string) error {
		values, err := attempt.CompileAll(exprs...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*into = values
		return nil
	}
	if at := slices.IndexFunc(s.expressions(), operation.ByClient); at >= 0 && len(s.GraphQL) == 0 {
		return nil, fmt.Errorf("%s: it is an argument of an operation: name the field that has it, such as `graphql addItemsToOrder`", s.expressions()[at])
	}
	err = errors.Join(compile("sale", &spec.Sale, s.Sale), compile("buyer", &spec.Buyer, s.Buyer), compile("region", &spec.Region, s.Region),
		compile("ref", &spec.Ref, s.Ref), compile("idempotency", &spec.Key, s.Idempotency))
	for kind, exprs := range s.Identities {
		var values attempt.Values
		err = errors.Join(err, compile("identity "+kind, &values, exprs))
		spec.Identities[kind] = values
	}
	err = errors.Join(err, s.compileLines(&spec))
	if err != nil {
		return nil, err
	}
	return attempt.NewReader(spec)
}
