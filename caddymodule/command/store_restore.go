package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/backup"
)

func restoreStore(c *call) error {
	in, err := c.openBackup(c.args[0])
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	dir, err := filepath.Abs(c.args[1])
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(c.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := c.working("reading " + c.args[0] + " into " + dir)
	r, err := backup.Restore(ctx, backup.Options{Dir: dir, Program: c.text("redis-server"), Log: zap.NewNop()}, in)
	done()
	if err != nil {
		return fmt.Errorf("%s is not restored: %w", c.args[0], err)
	}
	if c.flag("json") {
		return json.NewEncoder(c.cmd.OutOrStdout()).Encode(r)
	}
	c.tellRestored(r)
	return nil
}

// openBackup opens a file; - is the standard input.
func (c *call) openBackup(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.cmd.InOrStdin()), nil
	}
	return os.Open(name)
}

// tellRestored says what there is now, and what is to be done before it sells.
func (c *call) tellRestored(r *backup.Restored) {
	at := adminapi.LocalTime(r.Time)
	c.printf("%s has the store as of %s: %s, %s\n\n", r.Dir, at, humanize.IBytes(uint64(r.Bytes)), plural(len(r.Sales), "sale"))
	stopped := 0
	t := c.table("SALE", "WAS", "IS", "ORDERS IN ITS LINE")
	for _, s := range r.Sales {
		is := s.Was
		if is == sale.Open {
			is = sale.Paused
		}
		if s.Was != sale.Closed {
			stopped++
		}
		line := ""
		if s.Waiting+s.AtShop > 0 {
			line = fmt.Sprintf("%d wait, %d were at the shop; paused", s.Waiting, s.AtShop)
		}
		t.row(s.ID, string(s.Was), string(is), line)
	}
	if len(r.Sales) > 0 {
		_ = t.print()
	}
	if os.Geteuid() == 0 {
		c.printf("\n%s belongs to root. Where Caddy runs as another user: chown -R USER %[1]s\n", r.Dir)
	}
	if stopped == 0 {
		return
	}
	c.printf("\n%s\n", c.paint(terminal.Warn, "Units that were sold after "+at+" look available. For each sale, before you open it:"))
	c.printf(nextSteps, cmp.Or(firstStopped(r.Sales), "SALE"))
}

// firstStopped is a sale of which the next steps are told.
func firstStopped(sales []backup.Sale) string {
	for _, s := range sales {
		if s.Was != sale.Closed {
			return s.ID
		}
	}
	return ""
}

// nextSteps are the same for each sale.
const nextSteps = `
  start Caddy with this directory, and run 'caddy stockgate doctor'
  with a ledger that has more: caddy stockgate rebuild %[1]s --from ledger
  confirm the shop's orders:   caddy stockgate holds %[1]s --confirm-from orders.csv
  compare with the shop:       caddy stockgate reconcile %[1]s --shop orders.csv
  orders that wait in a line:  release them, 'caddy stockgate queue drain %[1]s', unless the shop
                               has none of them: then 'caddy stockgate queue resume %[1]s'
  sell again:                  caddy stockgate sale open %[1]s
`
