// Package stockgate is a Caddy module for use in front of an existing shop. It lets
// only those purchases through whose stock is already reserved.
//
// Importing this package registers every module of Stockgate with Caddy. This builds a
// Caddy that has them:
//
//	xcaddy build --with github.com/stockgate/stockgate
//
// A backend written in Go that verifies tokens imports
// github.com/stockgate/stockgate/token instead, which does not depend on Caddy.
package stockgate

// Each import registers modules or commands. A slim build imports caddymodule/command,
// and of the others those that it uses.
import (
	_ "github.com/stockgate/stockgate/caddymodule/command"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/mysql"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/postgres"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/sqlite"
	_ "github.com/stockgate/stockgate/caddymodule/mirror"
	_ "github.com/stockgate/stockgate/caddymodule/movein"
	_ "github.com/stockgate/stockgate/caddymodule/notify"
)
