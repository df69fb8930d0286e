package journals

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/ledger"
)

// LedgersNamespace is the namespace of the modules that can keep the ledger.
const LedgersNamespace = "stockgate.ledgers"

// LedgerModule is a module in the namespace stockgate.ledgers: a database that can keep the
// ledger.
type LedgerModule interface {
	caddy.Module
	// OpenLedger opens the ledger as configured. It does not wait for the database.
	OpenLedger() (ledger.Ledger, error)
	// Identity is equal for two modules that open the same ledger in the same way.
	Identity() string
	// Schema returns the statements that create the ledger's tables, in the language of the
	// database.
	Schema() []string
}

// ErrReplica says that a shop's database is not the primary, as far as its settings tell.
var ErrReplica = errors.New("the shop's database is read-only: a replica may lag behind, and show units that are sold and lack orders. " +
	"Give the address of the primary; if this is the primary, switch its read_only off")

// StockDatabase is an optional interface of modules in stockgate.ledgers: a kind of
// database that a shop may have, and that commands ask.
type StockDatabase interface {
	// OpensStock reports whether an address belongs to a database of this kind.
	OpensStock(dsn string) bool
	// OpenStock opens the database for reading. It need not connect. A query ends in the database too
	// once it has taken longer than within. An error does not repeat the address, which may contain a
	// password; a connection fails with ErrReplica where the database tells that it is a replica.
	OpenStock(dsn string, within time.Duration) (*sql.DB, error)
}

// ReadLedger reads the kind of ledger into the module's configuration; the module reads the rest of the line.
func ReadLedger(into *json.RawMessage) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		if !d.NextArg() {
			return d.Errf("wrong number of arguments: write `%s`", usage)
		}
		name := d.Val()
		if name == "off" {
			_, err := directive.Arguments(d, usage, 0, 0)
			return err
		}
		// The word may be an address with a password: the error does not repeat it.
		if !slices.Contains(LedgerNames(), name) {
			return d.Errf("there is no such ledger in this Caddy: write `%s`; it has %s", usage, strings.Join(LedgerNames(), ", "))
		}
		module, err := caddyfile.UnmarshalModule(d, LedgersNamespace+"."+name)
		if err != nil {
			return err
		}
		*into = caddyconfig.JSONModuleObject(module, "driver", name, nil)
		return nil
	}
}

// LedgerNames returns the names of the ledger modules in this program.
func LedgerNames() []string {
	var names []string
	for _, info := range caddy.GetModules(LedgersNamespace) {
		names = append(names, info.ID.Name())
	}
	if names == nil {
		names = []string{"none"}
	}
	return names
}
