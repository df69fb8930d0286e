package selling

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/filters/outcome"
)

// SellingOptions are the options that only a gate has: how it knows an earlier order, how long it holds stock, and what
// decides the outcome of an order.
type SellingOptions struct {
	// Ref is the shop's name of the order or cart, 1 to 128 characters: sold once to its buyer, then forwarded again.
	// `shared`: one order for all buyers; only for refs that cannot be guessed. Default: none.
	//
	// It has the form of a SKU. In a sale a buyer has at most one reservation for it that is not released or
	// expired: while that one is decided, another attempt is refused; when it is sold, the same order is forwarded
	// again with its token, and nothing is reserved. Another buyer with the same ref is another order.
	Ref []string `json:"ref,omitempty"`
	// RefShared: a ref names one order of the sale for all buyers, so that another buyer
	// with the same ref is refused. Use it only for refs that the shop's server makes and
	// that cannot be guessed: the first buyer with a ref has it. Default: false.
	RefShared bool `json:"ref_shared,omitempty"`
	// Continue: an attempt takes the place of another gate's hold under its ref. Default: off.
	//
	// The hold is one of the same buyer, made by a gate with outcome backend, as when the buyer comes to pay.
	// Without it only another cart takes that place, in a gate with outcome backend.
	Continue bool `json:"continue,omitempty"`
	// Repeats bounds how often a sold order is forwarded again, for each reservation. Default, with `ref`: `5 10s
	// keys 10000`.
	//
	// It counts on this edge alone.
	Repeats *ratelimit.Repeats `json:"repeats,omitempty"`
	// Lookup asks the shop what is in the cart, for `{lookup.PATH}`. Default: none.
	//
	// It asks in the buyer's name, after the lists and rates.
	Lookup *inquiry.Spec `json:"lookup,omitempty"`
	// Idempotency is the buyer's key, 1 to 255 characters: the same key gets the first answer again. Default:
	// none.
	//
	// The same request with the same key is reserved and sold once. Keys are per sale: the same key for an item of
	// another sale is a new purchase.
	Idempotency []string `json:"idempotency,omitempty"`
	// IdempotencyTTL is how long the key of a sold order is remembered, up to 720h, at least until the sale ends.
	// Default: 24h.
	IdempotencyTTL caddy.Duration `json:"idempotency_ttl,omitempty"`
	// Outcome is decided by the shop's answer, a later call of the shop to its API, or a question to it. Default:
	// `response`.
	//
	// With backend the shop confirms, extends or releases the hold, or lets it expire.
	Outcome string `json:"outcome,omitempty"`
	// Ask is what the shop is asked, in the buyer's name, after an order, with outcome ask.
	// The Rules judge what it answers.
	Ask *inquiry.Ask `json:"ask,omitempty"`
	// Answers are named tests of the shop's answer.
	Answers map[string]outcome.AnswerMatcher `json:"answers,omitempty"`
	// Rules decide the outcome; the first that matches counts. Without a confirm rule
	// 2xx confirms; without a release rule 4xx except 408, 409 and 499 releases.
	// What no rule matches is in doubt. With outcome backend there are only release
	// rules, none by default, and what no rule matches stays held.
	Rules []outcome.Rule `json:"rules,omitempty"`
	// InDoubt: holds in doubt wait for the shop or an operator, or the gate asks the shop. Default: `keep`.
	InDoubt *probe.InDoubt `json:"in_doubt,omitempty"`
	// HoldFor is how long stock is held for an attempt, 3s to 24h; the sale's `max_hold` bounds only what the shop extends.
	// Default: 30s; with `outcome backend` 15m.
	HoldFor caddy.Duration `json:"hold_for,omitempty"`
	// ForwardTimeout is how long the shop may take, at most until the token expires. Default: until then; with `outcome
	// backend` at most 20s.
	ForwardTimeout caddy.Duration `json:"forward_timeout,omitempty"`
	// MaxAnswer is how much of the shop's answer rules may read, 1KiB to 16MiB; an order may take several times as much
	// memory. Where a rule needs more, the reservation is in doubt. Default: 64KiB.
	//
	// A lookup reads 64 KiB.
	MaxAnswer int64 `json:"max_answer,omitempty"`
	// Queue lets orders with stock wait for the shop, in place of `busy`. Default: off.
	Queue *waiting.Options `json:"queue,omitempty"`
	// ExitsAs are the paths under which Caddy's rewrites send orders to the shop. Default: the matcher's.
	//
	// Each is as in a path matcher. Other requests that leave so are refused.
	ExitsAs []string `json:"exits_as,omitempty"`
	// Shadow: the gate refuses and holds nothing, and counts what it would have done. Default: off.
	//
	// It forwards every request as it is. When the shop has answered, a dry run decides what the gate would have
	// done, and metrics and reports say it.
	Shadow bool `json:"shadow,omitempty"`
}
