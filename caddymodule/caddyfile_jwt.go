package caddymodule

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

const jwtUsage = "jwt <jwks-url> | hmac <secret> | ed25519 <pem|file>"

// readJWT reads how bearer tokens are verified.
func readJWT(into **JWT) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := arguments(d, usage, 1, 2)
		if err != nil {
			return err
		}
		j := new(JWT)
		switch kind, material := args[0], args[1:]; {
		case kind == "hmac" || kind == "ed25519":
			if len(material) == 0 {
				return d.Errf("jwt %s has no key: write `%s`", kind, usage)
			}
			if kind == "hmac" {
				j.HMAC = material[0]
			} else {
				j.Ed25519 = material[0]
			}
		case strings.HasPrefix(kind, "https://") || strings.HasPrefix(kind, "http://") || strings.HasPrefix(kind, "{"):
			if len(material) > 0 {
				return d.Errf("jwt takes one URL: write `%s`", usage)
			}
			j.JWKS = kind
		default:
			// The word may be a secret whose kind was forgotten: it is not repeated.
			return d.Errf("jwt has neither an http or https URL nor a kind of key: write `%s`", usage)
		}
		err = readBlock(d, map[string]option{
			"issuer":   {usage: "issuer <name>", read: text(&j.Issuer)},
			"audience": {usage: "audience <name>", read: text(&j.Audience)},
			"cookie":   {usage: "cookie <name>", read: text(&j.Cookie)},
			"leeway":   {usage: "leeway <duration>", read: duration(&j.Leeway)},
		})
		if err != nil {
			return err
		}
		*into = j
		return nil
	}
}
