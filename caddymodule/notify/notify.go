// Package notify lets edges tell operators what happens in a sale: the option notify. A build that does not import it
// has no such option.
package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/notify"
	"github.com/stockgate/stockgate/internal/post"
)

func init() { caddy.RegisterModule(new(Notify)) }

// Notify is a receiver that tells operators what happens in a sale, once over all edges: a chat that reads the
// messages of Slack's incoming webhooks, or a signed webhook. Every edge must have the same one.
type Notify struct {
	// URL is where messages are posted: http or https. It may contain placeholders such as
	// {env.NOTIFY_URL}. Required.
	URL string `json:"url"`
	// Form is Slack's incoming webhooks, which Mattermost, Rocket.Chat and Discord (`…/slack`) read too, or a
	// signed webhook. Default: by the URL or `secret`.
	Form string `json:"form,omitempty"`
	// Secrets sign each message, all of them: `whsec_` and base64 of 24 to 64 bytes. Required with `webhook`.
	Secrets []string `json:"secrets,omitempty"`
	// Page is the page's URL, for links. Default: no link.
	Page string `json:"page,omitempty"`
	// Timeout is how long the receiver may take, 1s to 1m. Default: 10s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// Only are the only kinds that are told. Default: all.
	Only []string `json:"only,omitempty"`
	// Except are kinds that are not told. Not with `only`.
	Except []string `json:"except,omitempty"`

	target notify.ReceiverOptions
}

// The kinds of notices, as operators name them.
const (
	kindSale      = "sale"
	kindStock     = "stock"
	kindShop      = "shop"
	kindInDoubt   = "in_doubt"
	kindUnbacked  = "unbacked"
	kindQueue     = "queue"
	kindEdge      = "edge"
	kindLedger    = "ledger"
	kindOutbox    = "outbox"
	kindFence     = "fence"
	kindBypass    = "bypass"
	kindChallenge = "challenge"
)

var kinds = []string{kindSale, kindStock, kindShop, kindInDoubt, kindUnbacked, kindQueue, kindEdge, kindLedger, kindOutbox, kindFence, kindBypass, kindChallenge}

// CaddyModule returns the Caddy module information.
func (*Notify) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.notify", New: func() caddy.Module { return new(Notify) }}
}

// Provision fills in the placeholders and checks all fields. It does not connect. No error repeats the URL.
func (n *Notify) Provision(caddy.Context) error {
	if err := n.fill(); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

func (n *Notify) fill() error {
	t := notify.ReceiverOptions{Form: notify.Form(n.Form), Timeout: time.Duration(n.Timeout)}
	for _, o := range []struct {
		name, from string
		into       *string
	}{{"the URL", n.URL, &t.URL}, {"page", n.Page, &t.Page}} {
		filled, err := directive.FillAll(o.from)
		if err != nil {
			return fmt.Errorf("%s %w", o.name, err)
		}
		*o.into = strings.TrimSpace(filled) // a file ends with a newline
	}
	for i, from := range n.Secrets {
		text, err := directive.FillSecret(from)
		if err != nil {
			return fmt.Errorf("secret number %d %w", i+1, err)
		}
		secret, err := post.ParseSecret(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("secret number %d: %w", i+1, err)
		}
		t.Secrets = append(t.Secrets, secret)
	}
	if err := n.checkKinds(); err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return err
	}
	n.target = t
	return nil
}

func (n *Notify) checkKinds() error {
	if len(n.Only) > 0 && len(n.Except) > 0 {
		return fmt.Errorf("`only` and `except` exclude each other: write one of them")
	}
	for _, kind := range slices.Concat(n.Only, n.Except) {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("there is no kind of notice %.40q: there are %s", kind, strings.Join(kinds, ", "))
		}
	}
	for _, kind := range kinds {
		if n.tells(kind) {
			return nil
		}
	}
	return fmt.Errorf("`except` names all kinds, so nothing is told: leave notify out")
}

// tells reports whether operators want to be told of a kind.
func (n *Notify) tells(kind string) bool {
	return (len(n.Only) == 0 || slices.Contains(n.Only, kind)) && !slices.Contains(n.Except, kind)
}

// Open returns what tells operators of an app.
func (n *Notify) Open(a *app.App) app.Notifier { return &teller{app: a, config: n} }

// UnmarshalCaddyfile reads the option. Syntax:
//
//	notify <url> {
//		form    slack|webhook
//		secret  <secret>
//		page    <url>
//		timeout <duration>
//		only    <kind...>
//		except  <kind...>
//	}
func (n *Notify) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // notify
	args, err := directive.Arguments(d, "notify <url> { … }", 1, 1)
	if err != nil {
		return err
	}
	n.URL = args[0]
	at := *d
	err = directive.ReadBlock(d, map[string]directive.Option{
		"form": {Usage: "form slack|webhook", Read: directive.Text(&n.Form)},
		"secret": {Usage: "secret <secret>", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 1, 1)
			n.Secrets = append(n.Secrets, args...)
			return err
		}},
		"page":    {Usage: "page <url>", Read: directive.Text(&n.Page)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&n.Timeout)},
		"only":    {Usage: "only <kind...>", Read: directive.Texts(&n.Only)},
		"except":  {Usage: "except <kind...>", Read: directive.Texts(&n.Except)},
	})
	if err == nil {
		if err := n.checkKinds(); err != nil {
			return at.Errf("notify: %v", err)
		}
	}
	return err
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Notify)(nil)
	_ caddyfile.Unmarshaler = (*Notify)(nil)
	_ app.NotifyModule      = (*Notify)(nil)
)
