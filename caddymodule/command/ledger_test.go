package command_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// The tables of each ledger can be printed without a running Caddy.
func TestLedgerSchema(t *testing.T) {
	for database, want := range map[string]string{"sqlite": "PRAGMA user_version = 1;", "mysql": "INSERT INTO stockgate_schema (version) VALUES (1);", "postgres": "INSERT INTO stockgate_schema (version) VALUES (1);"} {
		r := sitetest.Run(t, "", "ledger", "schema", database)
		if r.Status != 0 || !strings.Contains(r.Out, want) || !strings.Contains(r.Out, "movements (") || r.Errors != "" {
			t.Errorf("%s: %+v", database, r)
		}
	}
	if r := sitetest.Run(t, "", "ledger", "schema", "oracle"); r.Status != 2 || !strings.Contains(r.Errors, "it has mysql, postgres, sqlite") {
		t.Errorf("oracle: %+v", r)
	}
}
