// Package stockgate is a Caddy module that stands in front of an existing shop
// and lets only those purchases through whose stock is already reserved.
//
// Importing this package registers every module of Stockgate with Caddy, so
// that this builds a Caddy which has them:
//
//	xcaddy build --with github.com/stockgate/stockgate
//
// A backend written in Go that checks the tokens it receives imports
// github.com/stockgate/stockgate/token instead, which knows no Caddy.
package stockgate

// Each import registers modules or commands. A slim build imports caddymodule/command,
// and the ledger that it uses.
import (
	_ "github.com/stockgate/stockgate/caddymodule/command"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/postgres"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/sqlite"
)
