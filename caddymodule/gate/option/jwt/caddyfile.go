package jwt

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// Usage is the syntax of the option jwt.
const Usage = "jwt <jwks-url> | hmac <secret> | ed25519 <pem|file>"

// ReadOption reads how bearer tokens are verified, and appends it to earlier ones.
func ReadOption(into *Configs) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 2)
		if err != nil {
			return err
		}
		j := new(Config)
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
			// The word may be a secret without its kind: the error does not repeat it.
			return d.Errf("jwt has neither an http or https URL nor a kind of key: write `%s`", usage)
		}
		err = directive.ReadBlock(d, map[string]directive.Option{
			"issuer":   {Usage: "issuer <name>", Read: directive.Text(&j.Issuer)},
			"audience": {Usage: "audience <name>", Read: directive.Text(&j.Audience)},
			"cookie":   {Usage: "cookie <name>", Read: directive.Text(&j.Cookie)},
			"require":  {Usage: "require <claim> <value...>", Read: j.readRequire, List: true},
			"prefix":   {Usage: "prefix <claim> <text>", Read: j.readPrefix, List: true},
			"leeway":   {Usage: "leeway <duration>", Read: directive.Duration(&j.Leeway)},
		})
		if err != nil {
			return err
		}
		*into = append(*into, j)
		return nil
	}
}

func (c *Config) readRequire(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, -1)
	if err != nil {
		return err
	}
	if _, twice := c.Require[args[0]]; twice {
		return d.Errf("require %s is given twice: write all its values in one line, of which a token must have one", args[0])
	}
	if c.Require == nil {
		c.Require = make(map[string][]string)
	}
	c.Require[args[0]] = args[1:]
	return nil
}

func (c *Config) readPrefix(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 2)
	if err != nil {
		return err
	}
	if _, twice := c.Prefix[args[0]]; twice {
		return d.Errf("prefix %s is given twice: write it once", args[0])
	}
	if c.Prefix == nil {
		c.Prefix = make(map[string]string)
	}
	c.Prefix[args[0]] = args[1]
	return nil
}

// KeyRisks returns warnings about keys that an attacker on the network path can replace.
func (cs Configs) KeyRisks() (risks []string) {
	for _, c := range cs {
		u, err := url.Parse(c.JWKS)
		if err == nil && u.Scheme == "http" && !staysHere(u.Hostname()) {
			risks = append(risks, "the keys of jwt are fetched from "+u.Redacted()+" without TLS: an attacker on the network path can sign in as any buyer: write https://")
		}
	}
	return risks
}

// staysHere reports whether a host is probably this machine.
func staysHere(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.ContainsAny(host, "{}") || err == nil && address.IsLoopback()
}
