package rig

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// CaughtUp waits until the ledger has every movement of a sale's journal, and returns both.
func (p *Postgres) CaughtUp(r *Redis, sale string) (ledger []auditor.Movement, s *auditor.Shard, err error) {
	err = Until("the ledger has everything", func() bool {
		var failed error
		if s, failed = Collect(r.Addr(), sale); failed != nil || len(s.Movements) == 0 {
			return false
		}
		ledger, failed = p.Movements(sale)
		return failed == nil && len(ledger) > 0 && ledger[len(ledger)-1].Seq == s.Movements[len(s.Movements)-1].Seq
	})
	return ledger, s, err
}

// ledgerRows reads rows of epoch, seq, time and kind, and id, was, lines, cause and record in hex.
func ledgerRows(rows []string) (all []auditor.Movement, err error) {
	epoch := ""
	for _, row := range rows {
		f := strings.Split(row, "|")
		if len(f) != 9 {
			return nil, fmt.Errorf("a row of the ledger has %d columns: %s", len(f), row)
		}
		for i := 4; i < 9; i++ {
			text, err := hex.DecodeString(f[i])
			if err != nil {
				return nil, fmt.Errorf("a row of the ledger: %w: %s", err, row)
			}
			f[i] = string(text)
		}
		m := auditor.Movement{Kind: f[3], ID: f[4], Was: f[5], Cause: f[7], Record: f[8], Merges: epoch != "" && f[0] != epoch}
		epoch = f[0]
		m.Seq, _ = strconv.ParseInt(f[1], 10, 64)
		m.Time, _ = strconv.ParseInt(f[2], 10, 64)
		if m.Lines, err = auditor.ParseUnits(f[6]); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
