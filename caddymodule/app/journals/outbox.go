package journals

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Outbox is the receiver to which every movement of the sales is sent over HTTP. Every edge
// must have the same one.
type Outbox struct {
	// URL is where movements are posted: http or https. It may contain placeholders such as
	// {env.ORDERS_URL}. Required.
	URL string `json:"url"`
	// Secrets sign each request, all of them: `whsec_` and base64 of 24 to 64 bytes. Required.
	Secrets []string `json:"secrets"`
	// Batch is the most movements of a request, up to 1,000. Default: 100.
	Batch int `json:"batch,omitempty"`
	// Timeout is how long the receiver may take, 1s to 1m. Default: 15s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// Sales are the only ones that are sent. Default: all.
	Sales []string `json:"sales,omitempty"`
	// Kinds are the only kinds of movements that are sent. Default: all.
	Kinds []string `json:"kinds,omitempty"`
}

// options fills in the placeholders and checks all fields. An error names a secret by its
// number only, and never contains the URL.
func (o *Outbox) options() (outbox.Options, error) {
	repl := caddy.NewReplacer()
	out := outbox.Options{URL: repl.ReplaceKnown(o.URL, ""), Batch: o.Batch, Timeout: time.Duration(o.Timeout), Sales: o.Sales, Kinds: o.Kinds}
	if err := checkOutboxURL(out.URL); err != nil {
		return out, err
	}
	if len(o.Secrets) == 0 {
		return out, errors.New("there is no secret: write `secret {env.OUTBOX_SECRET}`, with a value that `echo whsec_$(openssl rand -base64 32)` makes")
	}
	for i, from := range o.Secrets {
		text := repl.ReplaceKnown(from, "")
		if text == "" {
			return out, fmt.Errorf("secret number %d is empty; is the variable or file that it names there?", i+1)
		}
		secret, err := outbox.ParseSecret(strings.TrimSpace(text)) // a file ends with a newline
		if err != nil {
			return out, fmt.Errorf("secret number %d: %w", i+1, err)
		}
		out.Secrets = append(out.Secrets, secret)
	}
	if o.Batch < 0 || o.Batch > outbox.MaxBatch {
		return out, fmt.Errorf("batch is %d: 1 to %d, or leave it out", o.Batch, outbox.MaxBatch)
	}
	if t := out.Timeout; t != 0 && (t < time.Second || t > time.Minute) {
		return out, fmt.Errorf("timeout %v is outside 1s to 1m", t)
	}
	for _, id := range o.Sales {
		if !sale.IsID(id) {
			return out, fmt.Errorf("%.80q is no id of a sale: 1 to 64 of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or digit", id)
		}
	}
	for _, kind := range o.Kinds {
		if !slices.Contains(journal.MovementKinds(), kind) {
			return out, fmt.Errorf("there is no kind of movement %.80q: there are %s", kind, strings.Join(journal.MovementKinds(), ", "))
		}
	}
	return out, nil
}

// checkOutboxURL checks the URL. Its errors do not repeat the URL, which may contain a
// secret.
func checkOutboxURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("the URL is empty; is the variable that it names there?")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" || strings.ContainsAny(text, "{} "):
		return errors.New("the URL must be a whole http or https URL, without placeholders that are unknown when the configuration loads")
	case u.User != nil:
		return errors.New("the URL has a user in it: the receiver knows the outbox by its signature")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("the URL has a fragment, which is never sent: leave out # and what follows")
	}
	return nil
}

// isOpen reports whether others on the network can read what is sent: it leaves this machine
// without TLS.
func isOpen(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// ReadOutbox reads the outbox's receiver.
func ReadOutbox(into **Outbox) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		at := *d
		o := &Outbox{URL: args[0]}
		err = directive.ReadBlock(d, map[string]directive.Option{
			"secret": {Usage: "secret <secret>", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
				args, err := directive.Arguments(d, usage, 1, 1)
				o.Secrets = append(o.Secrets, args...)
				return err
			}},
			"batch":   {Usage: "batch <number>", Read: directive.Count(&o.Batch)},
			"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&o.Timeout)},
			"sales":   {Usage: "sales <sale...>", Read: directive.Texts(&o.Sales)},
			"kinds":   {Usage: "kinds <kind...>", Read: directive.Texts(&o.Kinds)},
		})
		if err != nil {
			return err
		}
		if len(o.Secrets) == 0 {
			return at.Errf("outbox has no secret: write `secret {env.OUTBOX_SECRET}` in its block")
		}
		*into = o
		return nil
	}
}
