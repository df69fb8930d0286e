package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// One owner at a time has the outbox of a sale. The next owner sends what the last one has
// begun to send, and what the receiver has is never behind what Redis was told.
func TestClaimOutbox(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		stocktest.Load(t, s, stocktest.OpenSale("s", 1))
		h := headOf(t, s)
		if h.Sent != 0 || !h.SentAt.IsZero() || h.Unsent() != h.Last || h.Last < 2 {
			t.Fatalf("before: %+v", h)
		}
		claim := func(owner string, forHow time.Duration, epoch, last, sent, sending int64, want bool) {
			t.Helper()
			at, ours, err := s.Journal().AcquireLease(stocktest.Soon(t), "s", owner, forHow, epoch, last)
			if ours != want || err != nil || at.Epoch != h.Epoch || at.Sent != sent || ours && at.Sending != sending {
				t.Fatalf("lease for %s: %+v %v, error %v", owner, at, ours, err)
			}
		}
		sent := func(epoch, seq int64) error { return s.Journal().Sent(stocktest.Soon(t), "s", epoch, seq) }
		claim("A", time.Hour, h.Epoch, 0, 0, 0, true)
		claim("A", time.Hour, h.Epoch-1, 2, 0, 0, true) // read in another epoch of the sale
		claim("A", time.Hour, h.Epoch, 1, 0, 1, true)
		claim("A", time.Hour, h.Epoch, 2, 0, 1, true) // 1 is on its way
		claim("B", time.Hour, h.Epoch, 2, 0, 0, false)
		if err := s.Journal().GiveUpLease(stocktest.Soon(t), "s", "B"); err != nil {
			t.Fatal(err)
		}
		claim("B", time.Hour, h.Epoch, 2, 0, 0, false)
		if err := s.Journal().GiveUpLease(stocktest.Soon(t), "s", "A"); err != nil {
			t.Fatal(err)
		}
		claim("B", time.Hour, h.Epoch, 2, 0, 1, true)
		if err := sent(h.Epoch, 1); err != nil { // the receiver took A's request after all
			t.Fatal(err)
		}
		claim("B", time.Millisecond, h.Epoch, 2, 1, 2, true) // and B dies
		ctx := stocktest.Soon(t)
		for ours := false; !ours; {
			var err error
			if _, ours, err = s.Journal().AcquireLease(ctx, "s", "A", time.Hour, h.Epoch, 2); err != nil {
				t.Fatal(err)
			}
		}
		for _, seq := range []int64{2, 1} {
			if err := sent(h.Epoch, seq); err != nil {
				t.Fatal(err)
			}
		}
		claim("A", time.Hour, h.Epoch, 0, 2, 2, true)
		if gap, ok := errors.AsType[*journal.GapError](sent(h.Epoch, h.Last+1)); !ok || gap.Want != h.Last+1 {
			t.Errorf("more than there is: %v", gap)
		}
		if err := sent(h.Epoch-1, 1); !errors.Is(err, shard.ErrNoSale) {
			t.Errorf("another epoch: %v", err)
		}
		if _, _, err := s.Journal().AcquireLease(stocktest.Soon(t), "nosale", "A", time.Hour, 1, 1); !errors.Is(err, shard.ErrNoSale) {
			t.Errorf("another sale: %v", err)
		}
		if after := headOf(t, s); after.Sent != 2 || after.SentAt.IsZero() || after.Last != h.Last {
			t.Errorf("after: %+v", after)
		}
	})
}

// Movements that the outbox's receiver lacks stay, as long as the outbox worked not too long
// ago.
func TestTrimBehindOutbox(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for _, test := range []struct {
			name        string
			sent, acked int64 // -1: there is no ledger or outbox
			first       int64 // of what is left when all up to 2,000 may go
			patience    time.Duration
		}{
			{"no outbox", -1, -1, 2_001, time.Hour},
			{"one that has sent nothing yet", 0, -1, 1, time.Hour},
			{"one that has sent some", 700, -1, 701, time.Hour},
			{"one that has sent more", 2_500, -1, 2_001, time.Hour},
			{"one of long ago", 700, -1, 2_001, 0},
			{"behind a ledger", 700, 900, 701, time.Hour},
			{"before a ledger", 900, 700, 701, time.Hour},
		} {
			t.Run(test.name, func(t *testing.T) {
				s := stocktest.OpenStore(t, stocktest.Options(b))
				if _, err := s.Journal().Head(stocktest.Soon(t), "s"); err != nil {
					stocktest.Load(t, s, stocktest.OpenSale("s", 1))
				}
				c := b.Client()
				lengthen(t, s, c, 12_500, 5, time.Now().Add(-time.Minute))
				if err := c.HDel(stocktest.Soon(t), s.Shard().ShardKeys("s")[0], "acked", "acked_at", "sent", "sent_at", "sender", "sending").Err(); err != nil {
					t.Fatal(err)
				}
				epoch := headOf(t, s).Epoch
				if test.acked >= 0 {
					if err := s.Journal().Acknowledge(stocktest.Soon(t), "s", epoch, test.acked); err != nil {
						t.Fatal(err)
					}
				}
				if test.sent >= 0 {
					if _, _, err := s.Journal().AcquireLease(stocktest.Soon(t), "s", "A", time.Hour, epoch, 0); err != nil {
						t.Fatal(err)
					}
				}
				if test.sent > 0 {
					if err := s.Journal().Sent(stocktest.Soon(t), "s", epoch, test.sent); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.Journal().Trim(stocktest.Soon(t), "s", headOf(t, s), 2_000, false, test.patience); err != nil {
					t.Fatal(err)
				}
				if h := headOf(t, s); h.First != test.first {
					t.Errorf("the journal is %+v, it should begin at %d", h, test.first)
				}
			})
		}
	})
}
