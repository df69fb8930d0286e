// Package postgres lets Caddy keep the ledger in PostgreSQL. A build that does not
// import it has neither the module nor a driver.
package postgres

import (
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/postgres"
)

func init() { caddy.RegisterModule(new(Postgres)) }

// Postgres keeps the ledger in PostgreSQL 12 or newer.
type Postgres struct {
	// DSN is the address of the database: postgres://user:password@host:5432/database, or
	// host=… user=… dbname=…. The address, or the password in it, may be a placeholder such
	// as {env.LEDGER}. Required.
	DSN string `json:"dsn,omitempty"`

	dsn string
}

// CaddyModule returns the Caddy module information.
func (*Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.ledgers.postgres", New: func() caddy.Module { return new(Postgres) }}
}

// Provision reads the address. It does not connect.
func (p *Postgres) Provision(caddy.Context) error {
	p.dsn = caddy.NewReplacer().ReplaceKnown(p.DSN, "")
	if p.dsn == "" {
		return errors.New("no address: write `ledger postgres <dsn>`, and set the variables in it")
	}
	l, err := postgres.Open(p.dsn)
	if err != nil {
		return err
	}
	return l.Close()
}

// OpenLedger returns a ledger that connects on its first use.
func (p *Postgres) OpenLedger() (ledger.Ledger, error) { return postgres.Open(p.dsn) }

// Identity returns the address, which is secret.
func (p *Postgres) Identity() string { return p.dsn }

// Schema returns the statements that create the tables.
func (*Postgres) Schema() []string { return postgres.Migrations() }

// UnmarshalCaddyfile reads what follows `ledger`. Syntax:
//
//	postgres <dsn>
func (p *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // postgres
	if !d.AllArgs(&p.DSN) || p.DSN == "" || d.NextBlock(0) {
		return d.Errf("wrong number of arguments: write `ledger postgres <dsn>`, an address with spaces in quotes")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner      = (*Postgres)(nil)
	_ caddyfile.Unmarshaler  = (*Postgres)(nil)
	_ journals.LedgerModule  = (*Postgres)(nil)
	_ journals.StockDatabase = (*Postgres)(nil)
)
