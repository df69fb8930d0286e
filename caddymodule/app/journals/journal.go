package journals

import (
	"fmt"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Journal bounds how much of each sale's journal stays in Redis. The newest 10,000
// movements always stay and, with a ledger, all that the ledger does not have yet.
type Journal struct {
	// Keep is how long movements stay, at least 1m. Default: 168h.
	Keep caddy.Duration `json:"keep,omitempty"`
	// Most is how many movements of a sale stay, at least 10,000. Default: 5,000,000; with a ledger 100,000.
	Most int64 `json:"most,omitempty"`
}

const (
	defaultJournalKeep       = 7 * 24 * time.Hour
	defaultJournalMost       = 5_000_000
	defaultJournalMostLedger = 100_000
)

// keep returns the configured bounds, with their defaults.
func (j Journal) keep(withLedger bool) (ledger.Retention, error) {
	switch {
	case j.Keep < 0 || j.Keep > 0 && time.Duration(j.Keep) < time.Minute:
		return ledger.Retention{}, fmt.Errorf("journal: keep is %v: at least 1m, or leave it out", time.Duration(j.Keep))
	case j.Most < 0 || j.Most > 0 && j.Most < journal.MinJournal:
		return ledger.Retention{}, fmt.Errorf("journal: most is %d: at least %d, or leave it out", j.Most, journal.MinJournal)
	}
	k := ledger.Retention{For: time.Duration(j.Keep), Most: j.Most, Ledger: withLedger}
	if k.For == 0 {
		k.For = defaultJournalKeep
	}
	switch {
	case k.Most > 0:
	case withLedger:
		k.Most = defaultJournalMostLedger
	default:
		k.Most = defaultJournalMost
	}
	return k, nil
}

// ReadCaddyfile reads the option.
func (j *Journal) ReadCaddyfile(d *caddyfile.Dispenser, usage string) error {
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"keep": {Usage: "keep <duration>", Read: directive.Duration(&j.Keep)},
		"most": {Usage: "most <number>", Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 1, 1)
			if err != nil {
				return err
			}
			if j.Most, err = strconv.ParseInt(args[0], 10, 64); err != nil || j.Most <= 0 {
				return d.Errf("%q is not a whole number above 0", args[0])
			}
			return nil
		}},
	})
}
