package option

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// Setup is what a judge gets from the handler that has it, before it is opened.
type Setup struct {
	*AttemptOptions
	Names
	// App is the app of the configuration; nil: the judge is not opened.
	App *app.App
	// Own are the options of what holds stock for the attempts that the judge lets pass; nil: it only checks.
	Own SellerOptions
	// InShadow: the judge refuses nothing.
	InShadow bool
	// Enters: attempts enter a waiting list, by requests for EntersAt; empty: that is not known.
	Enters   bool
	EntersAt string

	around     around
	fastLogged accesslog.Share
}

// SellerOptions are the options that only a seller has.
type SellerOptions interface {
	// Gives reports whether one of them is there, by its name in the table of conflicts.
	Gives(option string) bool
	// SellingRisks returns the risks that they have.
	SellingRisks() []OptionRisk
}

// Names are the options by which a gate recognises an earlier order, and asks what an attempt is about. A
// stockgate_check has only Lookup.
type Names struct {
	Ref         []string
	RefShared   bool
	Continue    bool
	Idempotency []string
	Lookup      *inquiry.Spec
}

// OnlyChecks reports whether the judge has no seller: a stockgate_check or a stockgate_waitlist has it.
func (s *Setup) OnlyChecks() bool { return s.Own == nil }

// OnlyTurns reports whether a check lets requests of a session wait, and reads nothing in them.
func (s *Setup) OnlyTurns() bool { return s.OnlyChecks() && s.OneAtATime != nil }

// LookAround reads the matchers around the handler, which is being provisioned.
func (s *Setup) LookAround(ctx caddy.Context) {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	s.around = aroundIn(ctx, server)
}

// Hosts returns the hosts that the matchers around the handler name.
func (s *Setup) Hosts() []string { return s.around.hosts }

// Paths returns the patterns of the path matchers around the handler.
func (s *Setup) Paths() []string { return s.around.paths }

// Prefixes returns what warns about paths that end before the * of the judge's patterns. A check has
// something to do there only if it makes a session wait that is known by more than a part of the path.
func (s *Setup) Prefixes() (p guard.Prefixes, asks bool) {
	return guard.Prefixes{Check: s.OnlyChecks()}, !s.OnlyChecks() || s.OneAtATime != nil && !s.OneAtATime.InPathOnly()
}

// InSite adds the site and the gate to an error of provisioning, of which Caddy names positions only.
func (s *Setup) InSite(ctx caddy.Context, err error) error {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if err == nil || server == nil {
		return err
	}
	site := "the site at " + strings.Join(server.Listen, ", ")
	if hosts := matchers.Hosts(ctx, server); len(hosts) > 0 {
		site = "the site " + strings.Join(hosts, ", ")
	}
	if strings.HasPrefix(err.Error(), s.Title()) {
		return fmt.Errorf("in %s: %w", site, err)
	}
	return fmt.Errorf("in %s, %s: %w", site, s.Title(), err)
}
