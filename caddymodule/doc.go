// Package caddymodule is Stockgate inside Caddy. Importing it registers every module that runs
// in the server, each from a package of its own below this one, and their Caddyfile directives.
// The commands of `caddy stockgate` are in package command.
package caddymodule

// These packages register modules that have no directive.
import (
	_ "github.com/stockgate/stockgate/caddymodule/fast"
	_ "github.com/stockgate/stockgate/caddymodule/operate/operator"
)
