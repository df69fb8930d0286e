package ledgertest

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

func OpenFile(t testing.TB, file string) ledger.Ledger {
	t.Helper()
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Backup returns all keys of a Redis as they were.
func Backup(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	ctx := Soon(t)
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, k := range keys {
		if all[k], err = c.Dump(ctx, k).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func Restore(t *testing.T, c *redis.Client, all map[string]string) {
	t.Helper()
	pipe := c.TxPipeline()
	pipe.FlushAll(Soon(t))
	for k, v := range all {
		pipe.Restore(Soon(t), k, 0, v)
	}
	if _, err := pipe.Exec(Soon(t)); err != nil {
		t.Fatal(err)
	}
}

// Trim removes the journal's entries up to a number, as a keeper would.
func Trim(t *testing.T, server *redistest.Server, upTo int64) {
	t.Helper()
	if err := server.Client().XTrimMinID(Soon(t), "stockgate:{s.0}:journal", fmt.Sprint(upTo+1, "-0")).Err(); err != nil {
		t.Fatal(err)
	}
}

const NotFollowing = "the ledger does not follow the sale"

// Drained returns a seller whose sale is in a ledger, with no drainer running.
func Drained(t *testing.T, units int64, times int) (*redistest.Server, *Seller, ledger.Ledger) {
	t.Helper()
	server := redistest.Start(t)
	s := NewSeller(t, server, units)
	l := OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	end := s.Drain(l, NewCounts())
	s.Sell(times)
	s.UntilDrained(l)
	end()
	return server, s, l
}

func Flush(t *testing.T, server *redistest.Server) {
	t.Helper()
	if err := server.Client().FlushAll(Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
}

func Rebuild(t *testing.T, l ledger.Ledger, s *Seller, o recovery.RebuildOptions) *recovery.Rebuilt {
	t.Helper()
	o.By = "test"
	out, err := recovery.Rebuild(Soon(t), l, s.Store, "s", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
	return out
}

// Attempt tries to hold a unit of "a".
func Attempt(t *testing.T, s *Seller, id, ref string) (reservation.Hold, *sale.Refusal, error) {
	t.Helper()
	l, ok := s.Catalogue().Sale("s")
	if !ok {
		return reservation.Hold{}, sale.Refuse(sale.UnknownSale), nil
	}
	lines := []sale.Line{{SKU: "a", Quantity: 1}}
	a := &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: lines, Key: "key of " + id, Print: "p", Ref: ref, RefShared: true}
	return s.Hold(Soon(t), id, l, a, lines, edge.HoldOptions{HoldFor: time.Hour, Margin: time.Minute, Mode: record.ModeResponse, Gate: "main"})
}
