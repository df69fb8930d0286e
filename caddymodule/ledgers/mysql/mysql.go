// Package mysql lets Caddy keep the ledger in MySQL or MariaDB. A build that does not import it has neither the
// module nor a driver.
package mysql

import (
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/mysql"
)

func init() { caddy.RegisterModule(new(MySQL)) }

// MySQL keeps the ledger in MySQL 8 or newer, or in MariaDB 10.5 or newer, with InnoDB.
type MySQL struct {
	// DSN is the address of the database: mysql://user:password@host:3306/database, with ?tls=true for TLS, or
	// user:password@tcp(host:3306)/database. The address, or the password in it, may be a placeholder such as
	// {env.LEDGER}. Required.
	DSN string `json:"dsn,omitempty"`

	dsn string
}

// CaddyModule returns the Caddy module information.
func (*MySQL) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.ledgers.mysql", New: func() caddy.Module { return new(MySQL) }}
}

// Provision reads the address. It does not connect.
func (m *MySQL) Provision(caddy.Context) error {
	m.dsn = caddy.NewReplacer().ReplaceKnown(m.DSN, "")
	if m.dsn == "" {
		return errors.New("no address: write `ledger mysql <dsn>`, and set the variables in it")
	}
	l, err := mysql.Open(m.dsn)
	if err != nil {
		return err
	}
	return l.Close()
}

// OpenLedger returns a ledger that connects on its first use.
func (m *MySQL) OpenLedger() (ledger.Ledger, error) { return mysql.Open(m.dsn) }

// Identity returns the address, which is secret.
func (m *MySQL) Identity() string { return m.dsn }

// Schema returns the statements that create the tables.
func (*MySQL) Schema() []string { return mysql.Migrations() }

// UnmarshalCaddyfile reads what follows `ledger`. Syntax:
//
//	mysql <dsn>
func (m *MySQL) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // mysql
	if !d.AllArgs(&m.DSN) || m.DSN == "" || d.NextBlock(0) {
		return d.Errf("wrong number of arguments: write `ledger mysql <dsn>`")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner      = (*MySQL)(nil)
	_ caddyfile.Unmarshaler  = (*MySQL)(nil)
	_ journals.LedgerModule  = (*MySQL)(nil)
	_ journals.StockDatabase = (*MySQL)(nil)
)
