package resolve

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/webhook"
)

const verifyUsage = "verify stripe|standard|paddle <secret> [<tolerance>] | paypal|paypal_sandbox <webhook_id> [<tolerance>] | adyen|gocardless|razorpay|woocommerce|xendit <secret> | square <secret> <url> | " +
	"hmac <header> sha256|sha512 <secret> | token <header> <secret> | signed { … }"

func (h *Resolve) readVerify(d *caddyfile.Dispenser, usage string) (err error) {
	args, err := directive.Arguments(d, usage, 1, 4)
	if err != nil {
		return err
	}
	v := Signature{Scheme: args[0]}
	preset := webhook.Presets[v.Scheme]
	switch args = args[1:]; {
	case v.Scheme == "hmac" && len(args) == 3:
		v.Header, v.Algorithm, v.Key = args[0], args[1], args[2]
	case v.Scheme == "token" && len(args) == 2:
		v.Header, v.Key = args[0], args[1]
	case v.Scheme == "signed" && len(args) == 0:
		err = v.readSigned(d)
	case preset != nil && preset.URL && len(args) == 2:
		v.Key, v.URL = args[0], args[1]
	case preset != nil && preset.Timed && len(args) == 2:
		v.Key = args[0]
		v.Tolerance, err = directive.ParseDuration(d, args[1])
	case preset != nil && !preset.URL && len(args) == 1:
		v.Key = args[0]
	default:
		return d.Errf("verify %s: write `%s`", v.Scheme, usageOf(v.Scheme, usage))
	}
	if err == nil && preset != nil && preset.Issuer != nil {
		err = directive.ReadBlock(d, map[string]directive.Option{
			"ca": {Usage: "ca <file>", Read: directive.Text(&v.CA)},
		})
	}
	h.Verify = append(h.Verify, v)
	return err
}

// usageOf is the usage of one scheme; all, where there is none.
func usageOf(scheme, all string) string {
	preset := webhook.Presets[scheme]
	switch {
	case scheme == "hmac":
		return "verify hmac <header> sha256|sha512 <secret>"
	case scheme == "token":
		return "verify token <header> <secret>"
	case scheme == "signed":
		return "verify signed { … }"
	case preset == nil:
		return all
	case preset.Issuer != nil:
		return "verify " + scheme + " <webhook_id> [<tolerance>]"
	case preset.URL:
		return "verify " + scheme + " <secret> <url>"
	case preset.Timed:
		return "verify " + scheme + " <secret> [<tolerance>]"
	}
	return "verify " + scheme + " <secret>"
}

// readSigned reads the block that describes what is signed.
func (v *Signature) readSigned(d *caddyfile.Dispenser) error {
	v.Signed = new(webhook.Description)
	at := *d
	err := directive.ReadBlock(d, map[string]directive.Option{
		// `hmac-sha1`, `hmac-sha256`, `hmac-sha512`, `rsa-sha256`, `rsa-sha512` (PKCS #1 v1.5), `ecdsa-sha256` (ASN.1)
		// or `ed25519`. Required.
		"algorithm": {Usage: "algorithm <name>", Read: directive.Text(&v.Signed.Algorithm)},
		// the secret, at least 8 bytes; for RSA, ECDSA and Ed25519 the provider's public key or certificate in PEM, or an
		// Ed25519 key's 32 bytes in hex or base64. Required.
		"key": {Usage: "key <key> [text|hex|base64|base64url]", Read: readTwo(&v.Key, &v.Signed.KeyEncoding)},
		// divides a header into fields, for `{field.<name>}`: the text between two fields, and behind a name. Default: none;
		// `=`.
		"fields": {Usage: "fields <header> <between> [<after>]", Read: v.readFields},
		// what is signed: text, `{body}`, `{header.<name>}`, `{field.<name>}`, `{uri}` (path with query, as sent) and
		// `{newline}`, joined without spaces; a signed space stands in quotes. Required.
		"over": {Usage: "over <part...>", Read: v.readOver},
		// where the signature is. Of up to 16 fields of this name, one must fit. Required.
		"signature": {Usage: "signature {header.<name>}|{field.<name>} [hex|base64|base64url]", Read: readTwo(&v.Signed.Signature, &v.Signed.Encoding)},
		// a signed time since 1970, and how far it may be from now, 1s to 1h. Default: no time; `s`, 5m.
		"time": {Usage: "time {header.<name>}|{field.<name>} [s|ms] [<tolerance>]", Read: v.readTime},
	})
	switch {
	case err != nil:
		return err
	case v.Signed.Algorithm == "" || v.Key == "" || v.Signed.Signature == "":
		return at.Errf("verify signed needs algorithm, key and signature: write `algorithm hmac-sha256`, `key {env.NAME}` and `signature {header.NAME} hex`")
	}
	return nil
}

// readTwo reads a value, and one more that may be left out.
func readTwo(into, more *string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 2)
		if err != nil {
			return err
		}
		*into = args[0]
		if len(args) > 1 {
			*more = args[1]
		}
		return nil
	}
}

func (v *Signature) readFields(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 3)
	if err != nil {
		return err
	}
	v.Signed.Fields = &webhook.HeaderFields{Header: args[0], Between: args[1]}
	if len(args) > 2 {
		v.Signed.Fields.After = args[2]
	}
	return nil
}

// readOver joins the parts: a space that is signed is written in quotes.
func (v *Signature) readOver(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, -1)
	v.Signed.Over = strings.Join(args, "")
	return err
}

func (v *Signature) readTime(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 3)
	if err != nil {
		return err
	}
	v.Signed.Time, args = args[0], args[1:]
	if len(args) > 0 && (args[0] == "s" || args[0] == "ms") {
		v.Signed.Unit, args = args[0], args[1:]
	}
	switch len(args) {
	case 0:
		return nil
	case 1:
		var tolerance caddy.Duration
		tolerance, err = directive.ParseDuration(d, args[0])
		v.Tolerance = tolerance
		return err
	}
	return d.Errf("time: write `%s`", usage)
}

// isSecret reports whether the key must not be seen: a public key and the id of a webhook may be.
func (v *Signature) isSecret() bool {
	if preset := webhook.Presets[v.Scheme]; preset != nil && preset.Issuer != nil {
		return false
	}
	return v.Signed == nil || strings.HasPrefix(v.Signed.Algorithm, "hmac-") || v.Signed.Algorithm == "token"
}
