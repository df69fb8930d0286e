package command_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// An empty argument, as of a variable that is not set, is a mistake in the command line, and
// is named.
func TestEmptyArgumentsAreMistakes(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"sale", "open", ""}, "sale open: <sale> is empty: caddy stockgate sale open <sale>"},
		{[]string{"sale", "close", ""}, "sale close: <sale> is empty: caddy stockgate sale close <sale> [--drop-queue] [--export <file>] [--yes]"},
		{[]string{"sale", "forget-shadow", ""}, "sale forget-shadow: <sale> is empty: caddy stockgate sale forget-shadow <sale>"},
		{[]string{"sale", "export", "double11", ""}, "sale export: <file> is empty: caddy stockgate sale export <sale> <file>"},
		{[]string{"stock", "add", "double11", "", "1"}, "stock add: <sku> is empty: caddy stockgate stock add <sale> <sku> <units> [--region <region>] [--id <id>]"},
		{[]string{"holds", ""}, "holds: <sale> is empty: caddy stockgate holds [<sale>] [--state in_doubt|held|unbacked] [--cause <cause>] [--older <time>] [--confirm|--release|--confirm-from <file>]"},
		{[]string{"reservation", "show", ""}, "reservation show: <id> is empty: caddy stockgate reservation show <id>"},
		{[]string{"reservation", "confirm", ""}, "reservation confirm: <id> is empty: caddy stockgate reservation confirm <id>"},
		{[]string{"reservation", "extend", "r", ""}, "reservation extend: <time> is empty: caddy stockgate reservation extend <id> <time>"},
		{[]string{"reservation", "return", ""}, "reservation return: <reservation> is empty: caddy stockgate reservation return <reservation> [<sku>=<units>...] [--id <id>] [--region <region>] [--no-restock]"},
		{[]string{"list", "add", "", "buyer:alice"}, "list add: <name> is empty: caddy stockgate list add <name> <entry...>"},
		{[]string{"list", "remove", "vips", "buyer:alice", "phone:13800138000", ""}, "list remove: <entry> is empty: caddy stockgate list remove <name> <entry...>"},
		{[]string{"journal", "status", ""}, "journal status: <sale> is empty: caddy stockgate journal status [<sale>]"},
		{[]string{"ledger", "schema", ""}, "ledger schema: <database> is empty: caddy stockgate ledger schema <database>"},
		{[]string{"lua", "dump", ""}, "lua dump: <name> is empty: caddy stockgate lua dump [<name> | <sha1>]"},
	} {
		if r := s.Run(c.args...); r.Status != 2 || r.Out != "" || r.Errors != "caddy stockgate "+c.says+"\n" {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}
