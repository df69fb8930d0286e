package caddymodule_test

import (
	"strings"
	"testing"
)

// The tables of each ledger can be printed without a running Caddy.
func TestLedgerSchema(t *testing.T) {
	for database, want := range map[string]string{"sqlite": "PRAGMA user_version = 1;", "postgres": "INSERT INTO stockgate_schema (version) VALUES (1);"} {
		r := run(t, "", "ledger", "schema", database)
		if r.status != 0 || !strings.Contains(r.out, want) || !strings.Contains(r.out, "movements (") || r.errors != "" {
			t.Errorf("%s: %+v", database, r)
		}
	}
	if r := run(t, "", "ledger", "schema", "oracle"); r.status != 2 || !strings.Contains(r.errors, "it has postgres and sqlite") {
		t.Errorf("oracle: %+v", r)
	}
}
