package jwt

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/filters/bearer"
)

// Configs are the issuers of a gate: in JSON a list, or the one that there is.
type Configs []*Config

// MarshalJSON writes one issuer without a list around it.
func (cs Configs) MarshalJSON() ([]byte, error) {
	if len(cs) == 1 {
		return json.Marshal(cs[0])
	}
	return json.Marshal([]*Config(cs))
}

// UnmarshalJSON reads a list of issuers, or one. Names that it does not know are errors, as in all of Caddy's JSON.
func (cs *Configs) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("[")) || string(text) == "null" {
		return caddy.StrictUnmarshalJSON(text, (*[]*Config)(cs))
	}
	one := new(Config)
	*cs = Configs{one}
	return caddy.StrictUnmarshalJSON(text, one)
}

// Cookie is the cookie that holds the token; empty: it is in the header Authorization.
func (cs Configs) Cookie() string { return cs[0].Cookie }

// Check finds what cannot be, whatever the environment is.
func (cs Configs) Check() error {
	if slices.Contains(cs, nil) {
		return errors.New("an entry of the list is null: remove it")
	}
	for i, c := range cs {
		if err := c.checkClaims(); err != nil {
			return cs.at(i, err)
		}
		switch {
		case len(cs) > 1 && c.Issuer == "":
			return cs.at(i, errors.New("several jwt are several issuers, and the iss of a token selects the one that verifies it: write `issuer NAME` in the block of each"))
		case c.Cookie != cs[0].Cookie:
			return cs.at(i, errors.New("a request has one token, and the first jwt reads it elsewhere: write the same `cookie` in the block of each, or in none"))
		case slices.ContainsFunc(cs[:i], func(other *Config) bool { return other.Issuer == c.Issuer }):
			return cs.at(i, errors.New("an earlier jwt has its issuer: write each issuer once; several keys of one issuer are published as a JWKS"))
		}
	}
	return nil
}

// checkClaims checks the claims that the configuration names, before placeholders are filled in.
func (c *Config) checkClaims() error {
	require, _ := c.required(func(text string) (string, error) { return text, nil })
	return (&bearer.Options{Require: require, Prefix: c.Prefix}).CheckClaims()
}

// Risks returns warnings about a buyer that is one of these values, where it is a claim of the tokens.
func (cs Configs) Risks(buyer []string) (risks []string) {
	for _, value := range buyer {
		claim, ok := strings.CutPrefix(value, "{jwt.")
		claim, closed := strings.CutSuffix(claim, "}")
		switch {
		case !ok || !closed:
		case claim == "iss" || claim == "aud":
			risks = append(risks, "the buyer "+value+" is the same for all buyers of an issuer, who then share one buyer's limits: write {jwt.sub}, "+
				"and `prefix sub NAME:` in the block of a jwt if another issuer may give the same sub to another person")
		case cs.share(claim):
			risks = append(risks, "jwt has several issuers, and the same "+claim+" of two of them is one buyer of "+value+", with one buyer's limits: "+
				"if it may be two people, write `prefix "+claim+" NAME:` in the block of a jwt, with another name for each issuer")
		}
	}
	return risks
}

// share tells whether a claim of two issuers may have the same value: they have the same prefix, or none.
func (cs Configs) share(claim string) bool {
	for i, c := range cs {
		if slices.ContainsFunc(cs[:i], func(other *Config) bool { return other.Prefix[claim] == c.Prefix[claim] }) {
			return true
		}
	}
	return false
}
