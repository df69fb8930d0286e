package option

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/attempt"
)

// FastRefusals lets a listener wrapper refuse for a gate. Caddy's metrics do not include its
// answers, and the access log only those that Log asks for; the metrics of Stockgate count them.
//
// The gate must read all its values itself: a placeholder that another directive sets, such
// as {http.auth.user.id}, is an error.
type FastRefusals struct {
	// Force: allow handlers before the gate that may change what the client gets or the gate
	// sees; they do not run on a fast refusal. Without it, the gate itself refuses a request
	// that meets such a handler.
	Force bool `json:"force,omitempty"`
	// Log is the share of the fast refusals that get a line in the access log, above 0% and up to 100%. Default:
	// none.
	//
	// The line has the field `sampled`.
	Log string `json:"log,omitempty"`
}

// fastConflict returns an error for a value that the gate does not read itself.
func (s *Setup) fastConflict() error {
	for _, expr := range s.Values() {
		// a value that does not compile is reported elsewhere
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			return fmt.Errorf("fast_refusals: the value %s is known to Caddy only when it handles the request: take it from the request itself, such as {header.X} or {jwt.sub}", expr)
		}
	}
	return nil
}

// OpenFast checks what fast refusals require of the options.
func (s *Setup) OpenFast() (err error) {
	if s.FastRefusals == nil {
		return nil
	}
	if err := s.fastConflict(); err != nil {
		return err
	}
	if s.FastRefusals.Log != "" {
		if s.fastLogged, err = accesslog.ParseShare(s.FastRefusals.Log); err != nil {
			return fmt.Errorf("fast_refusals: %w", err)
		}
	}
	return nil
}

// FastLogged is the share of the fast refusals that get a line in the access log.
func (s *Setup) FastLogged() accesslog.Share { return s.fastLogged }

// readFast reads the option fast_refusals.
func (o *AttemptOptions) readFast(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 0, 1)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != "force" {
		return d.Errf("%q is no way to refuse fast: write `%s`", args[0], usage)
	}
	fast := &FastRefusals{Force: len(args) == 1}
	o.FastRefusals = fast
	return directive.ReadBlock(d, map[string]directive.Option{"log": {Usage: "log <percentage>", Read: fast.readLog}})
}

// readLog reads which share of the fast refusals is logged.
func (f *FastRefusals) readLog(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&f.Log)(d, usage); err != nil {
		return err
	}
	if _, err := accesslog.ParseShare(f.Log); err != nil {
		return d.WrapErr(err)
	}
	return nil
}
