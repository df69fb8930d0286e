// Package cart finds the carts of sessions: it asks the shop, remembers for a moment what it said, and lets the
// requests of one session, and of one cart, wait for each other.
package cart

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/filters/route"
)

// Clerk finds the carts of the requests of one judge.
type Clerk struct {
	// Verifying asks about the carts of orders that have waited; nil: as about others.
	Verifying *inquiry.Inquiry

	setup     *option.Setup
	filters   *option.Filters
	log       *zap.Logger
	alsoQuery []route.QueryPath
	heard     inquiry.Hearing // whether lookups get useful answers
	carts     session.Carts
	noID      option.Silence // of the carts of requests that are no attempt
}

// Open gives the clerk the options of its judge, and what they are compiled to. alsoQuery are the query parameters that the
// shop takes for a path.
func (c *Clerk) Open(setup *option.Setup, filters *option.Filters, alsoQuery []route.QueryPath, log *zap.Logger) {
	c.setup, c.filters, c.alsoQuery, c.log = setup, filters, alsoQuery, log
}

// Visitor is a request whose cart the clerk is to find.
type Visitor struct {
	*Session
	Repl *caddy.Replacer
	// IsAttempt: the request buys the cart. Others may change it.
	IsAttempt bool
	// DryRun: nothing may come of the request. HasWaited: it is an order whose turn at the shop has come, which is
	// kept for it for a moment only.
	DryRun, HasWaited bool
	// Ref is the cart's name as the request has it; empty: it has none.
	Ref string
	// Claims has the claims of the buyer's token; nil: none were read.
	Claims []byte
}

// Recall returns what the clerk remembers of the cart of an attempt; nil: the shop is to be asked.
func (c *Clerk) Recall(r *http.Request, v Visitor) []byte {
	if v.DryRun {
		return nil
	}
	return c.carts.Recall(v.Keys, v.question(r), time.Now())
}

// Forget forgets the cart of a session whose request goes to the shop, which may change it.
func (c *Clerk) Forget(s *Session) { c.carts.Forget(s.Keys) }

// question stands for what the shop is asked about the visitor.
func (v *Visitor) question(r *http.Request) uint64 { return inquiry.Question(r, v.Ref, v.Claims) }

// IsStranger reports whether a request has no credential by which the shop knows its cart.
func (c *Clerk) IsStranger(r *http.Request, s *Session) bool {
	return len(s.Keys) == 0 && (c.filters.Credentials.InRequest() || !inquiry.HasCredential(r))
}
