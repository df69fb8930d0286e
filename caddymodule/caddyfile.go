package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/check"
	"github.com/stockgate/stockgate/caddymodule/gate/waitlist"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/operate/dashboard"
	"github.com/stockgate/stockgate/caddymodule/resolve"
	"github.com/stockgate/stockgate/caddymodule/shopapi"
	"github.com/stockgate/stockgate/caddymodule/status"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("stockgate", app.ReadOption)
	httpcaddyfile.RegisterDirective("stockgate_guard", guard.ReadDirective)
	httpcaddyfile.RegisterHandlerDirective("stockgate_status", status.ReadDirective)
	httpcaddyfile.RegisterDirective("stockgate_check", check.ReadDirective)
	httpcaddyfile.RegisterDirective("stockgate_waitlist", waitlist.ReadDirective)
	httpcaddyfile.RegisterDirective("stockgate", gate.ReadDirective)

	// The guard stands before every directive that reads the headers it removes (map,
	// vars, request_header) or answers by path (redir, handle). Only tracing is
	// outside, so that requests that the guard refuses can be traced.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_guard", httpcaddyfile.After, "tracing")
	// Gate, check and status come after authentication, whose user is the buyer, and inside
	// intercept; but before invoke, handle and route, which would otherwise answer
	// first. Each of these lines inserts right before invoke: the status, which only
	// reads, is before the check, and that is before the gate.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_status", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterDirectiveOrder("stockgate_check", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterDirectiveOrder("stockgate_waitlist", httpcaddyfile.Before, "invoke")
	httpcaddyfile.RegisterDirectiveOrder("stockgate", httpcaddyfile.Before, "invoke")

	httpcaddyfile.RegisterHandlerDirective("stockgate_resolve", resolve.ReadDirective)
	httpcaddyfile.RegisterDirectiveOrder("stockgate_resolve", httpcaddyfile.Before, "invoke")

	httpcaddyfile.RegisterHandlerDirective("stockgate_api", shopapi.ReadDirective)
	// It answers every request that reaches it, so it is among the last: a private
	// site may have routes of its own, the status and metrics beside it.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_api", httpcaddyfile.After, "metrics")
	httpcaddyfile.RegisterHandlerDirective("stockgate_dashboard", dashboard.ReadDirective)
	httpcaddyfile.RegisterDirectiveOrder("stockgate_dashboard", httpcaddyfile.After, "metrics")
}
