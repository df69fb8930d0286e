// Package sqlite lets Caddy keep the ledger in a SQLite file. A build that does not
// import it has neither the module nor SQLite.
package sqlite

import (
	"errors"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
)

func init() { caddy.RegisterModule(new(SQLite)) }

// SQLite keeps the ledger in a SQLite file, which several processes of one machine
// may share.
type SQLite struct {
	// File is the path of the file, which is created if it does not exist. It may contain a
	// placeholder such as {env.LEDGER}. Required.
	File string `json:"file,omitempty"`

	path string
}

// CaddyModule returns the Caddy module information.
func (*SQLite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.ledgers.sqlite", New: func() caddy.Module { return new(SQLite) }}
}

// Provision resolves the path. It does not open the file: `caddy validate` must not.
func (s *SQLite) Provision(caddy.Context) (err error) {
	file := caddy.NewReplacer().ReplaceKnown(s.File, "")
	if file == "" {
		return errors.New("no file: write `ledger sqlite <file>`, and set the variables in it")
	}
	s.path, err = filepath.Abs(file)
	return err
}

// OpenLedger returns a ledger that opens the file on its first use.
func (s *SQLite) OpenLedger() (ledger.Ledger, error) { return sqlite.Open(s.path) }

// Identity returns the path of the file.
func (s *SQLite) Identity() string { return s.path }

// Schema returns the statements that create the tables.
func (*SQLite) Schema() []string { return sqlite.Migrations() }

// UnmarshalCaddyfile reads what follows `ledger`. Syntax:
//
//	sqlite <file>
func (s *SQLite) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // sqlite
	if !d.AllArgs(&s.File) || s.File == "" || d.NextBlock(0) {
		return d.Errf("wrong number of arguments: write `ledger sqlite <file>`")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner      = (*SQLite)(nil)
	_ caddyfile.Unmarshaler  = (*SQLite)(nil)
	_ journals.LedgerModule  = (*SQLite)(nil)
	_ journals.StockDatabase = (*SQLite)(nil)
)
