package e2e_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/stockgate/stockgate"
)

// beCaddy is set in a process in which the test binary is the caddy command.
const beCaddy = "STOCKGATE_TEST_BE_CADDY"

// binary is the test binary.
var binary, _ = os.Executable()

// caddyCommand is cmd/caddy with the modules of modules_test.go and two more directives, and with the race detector where
// the tests have it: e2e_panic panics, e2e_part fails in the middle of an answer.
func caddyCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), beCaddy+"=1")
	return cmd
}

func init() {
	caddy.RegisterModule(Panic{})
	httpcaddyfile.RegisterHandlerDirective("e2e_panic", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return Panic{}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("e2e_panic", httpcaddyfile.Before, "reverse_proxy")
	caddy.RegisterModule(Part{})
	httpcaddyfile.RegisterHandlerDirective("e2e_part", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return Part{}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("e2e_part", httpcaddyfile.Before, "reverse_proxy")
	if os.Getenv(beCaddy) != "" {
		caddycmd.Main()
		os.Exit(0)
	}
}

// Panic is a handler with a mistake in it.
type Panic struct{}

// CaddyModule returns the Caddy module information.
func (Panic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.e2e_panic", New: func() caddy.Module { return new(Panic) }}
}

// ServeHTTP panics.
func (Panic) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	panic("e2e: a handler panics")
}

// UnmarshalCaddyfile reads nothing.
func (Panic) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

// Part is a handler that fails when it has written more than a gate holds back.
type Part struct{}

// CaddyModule returns the Caddy module information.
func (Part) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.e2e_part", New: func() caddy.Module { return new(Part) }}
}

// ServeHTTP writes, and fails.
func (Part) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	if _, err := w.Write(bytes.Repeat([]byte("x"), 100<<10)); err != nil {
		return err
	}
	return errors.New("e2e: the rest is missing")
}
