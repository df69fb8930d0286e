package journal_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// lengthen extends the journal of sale "s" to this many movements, perCall in each call,
// without moving stock. The n-th movement is n ms younger than begins, or as old as the others
// of its call.
func lengthen(t *testing.T, s *reservation.Store, c *redis.Client, movements, perCall int, begins time.Time) {
	t.Helper()
	keys, ctx := s.Shard().ShardKeys("s"), stocktest.Soon(t)
	pipe := c.Pipeline()
	pipe.Del(ctx, keys[9])
	for n := perCall; n <= movements; n += perCall {
		text := strings.TrimSuffix(strings.Repeat("open\t1\t\t\t\t\t\n", perCall), "\n")
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: keys[9], ID: fmt.Sprintf("%d-0", n), Values: []any{
			"v", "1", "time", begins.UnixMilli() + int64(n), "movements", text}})
		if n%5000 == 0 {
			if _, err := pipe.Exec(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe.HSet(ctx, keys[0], "seq", movements, "clock", begins.UnixMilli()+int64(movements))
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

func headOf(t *testing.T, s *reservation.Store) journal.Head {
	t.Helper()
	h, err := s.Journal().Head(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Trimming removes what may go; what a ledger does not have, and the newest entries, stay.
func TestTrimJournal(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for _, test := range []struct {
			name        string
			acked       int64 // 0: no ledger was ever there
			upTo, first int64
			ledger      bool
			patience    time.Duration
		}{
			{"all that is asked", 0, 2_000, 2_001, false, time.Hour},
			{"in pieces", 0, 12_345, 12_346, false, time.Hour},
			{"not the newest", 0, 25_000, 15_001, false, time.Hour},
			{"nothing", 0, 0, 1, false, time.Hour},
			{"none of what a ledger lacks", 700, 12_000, 701, true, 0},
			{"a ledger that has nothing yet", 0, 12_000, 1, true, 0},
			{"another edge's ledger", 700, 12_000, 701, false, time.Hour},
			{"a ledger of long ago", 700, 12_000, 12_001, false, 0},
		} {
			t.Run(test.name, func(t *testing.T) {
				s := stocktest.OpenStore(t, stocktest.Options(b))
				if _, err := s.Journal().Head(stocktest.Soon(t), "s"); err != nil {
					stocktest.Load(t, s, stocktest.OpenSale("s", 1))
				}
				c := b.Client()
				lengthen(t, s, c, 25_000, 5, time.Now().Add(-time.Minute))
				if err := c.HDel(stocktest.Soon(t), s.Shard().ShardKeys("s")[0], "acked", "acked_at").Err(); err != nil {
					t.Fatal(err)
				}
				if test.acked > 0 {
					if err := s.Journal().Acknowledge(stocktest.Soon(t), "s", headOf(t, s).Epoch, test.acked); err != nil {
						t.Fatal(err)
					}
				}
				if gone, err := s.Journal().Trim(stocktest.Soon(t), "s", headOf(t, s), test.upTo, test.ledger, test.patience); err != nil || gone != test.first-1 {
					t.Fatalf("gone up to %d, error %v", gone, err)
				}
				h := headOf(t, s)
				if h.First != test.first || h.Last != 25_000 || h.Length != 25_001-test.first || h.Acked != test.acked {
					t.Errorf("the journal is %+v, it should begin at %d", h, test.first)
				}
				_, err := s.Journal().Movements(stocktest.Soon(t), "s", 0, 10)
				if gap, ok := errors.AsType[*journal.GapError](err); ok != (test.first > 1) || ok && (gap.Want != 1 || gap.Have != test.first) {
					t.Errorf("from the beginning: %v", err)
				}
				if all, err := s.Journal().Movements(stocktest.Soon(t), "s", test.first-1, 3); err != nil || len(all) != 3 || all[0].Seq != test.first {
					t.Errorf("from what is left: %+v, error %v", all, err)
				}
			})
		}
	})
}

// Before finds the last entry before a time, whatever was trimmed.
func TestJournalBefore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		stocktest.Load(t, s, stocktest.OpenSale("s", 1))
		begins := time.UnixMilli(time.Now().UnixMilli())
		lengthen(t, s, b.Client(), 12_000, 1, begins)
		for _, first := range []int64{1, 1_501} {
			if _, err := s.Journal().Trim(stocktest.Soon(t), "s", headOf(t, s), first-1, false, 0); err != nil {
				t.Fatal(err)
			}
			h := headOf(t, s)
			if h.First != first || !h.Began.Equal(begins.Add(time.Duration(first)*time.Millisecond)) {
				t.Fatalf("the journal is %+v", h)
			}
			for at, want := range map[int64]int64{0: 0, first: 0, first + 1: first, 5_000: 4_999, 12_000: 11_999, 12_001: 12_000, 99_999: 12_000} {
				got, err := s.Journal().Before(stocktest.Soon(t), "s", h, begins.Add(time.Duration(at)*time.Millisecond))
				if err != nil || got != want {
					t.Errorf("before %d ms: %d, error %v; want %d", at, got, err, want)
				}
			}
		}
	})
}

// Acknowledge only goes forward, and only as far as the journal of this epoch.
func TestAcknowledge(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		stocktest.Load(t, s, stocktest.OpenSale("s", 1))
		h := headOf(t, s)
		if h.Behind() != h.Last || h.Last == 0 || h.AckedAt.Unix() > 0 {
			t.Fatalf("before: %+v", h)
		}
		for _, seq := range []int64{2, 1} {
			if err := s.Journal().Acknowledge(stocktest.Soon(t), "s", h.Epoch, seq); err != nil {
				t.Fatal(err)
			}
		}
		if h := headOf(t, s); h.Acked != 2 || h.AckedAt.IsZero() || h.Behind() != h.Last-2 {
			t.Errorf("after: %+v", h)
		}
		if err := s.Journal().Acknowledge(stocktest.Soon(t), "s", h.Epoch, h.Last+1); err == nil {
			t.Error("acknowledged more than there is")
		}
		if err := s.Journal().Acknowledge(stocktest.Soon(t), "s", h.Epoch-1, 1); err == nil {
			t.Error("acknowledged in another epoch")
		}
		if err := s.Journal().Acknowledge(stocktest.Soon(t), "nosale", 0, 0); err == nil {
			t.Error("acknowledged for another sale")
		}
		if h := headOf(t, s); h.Acked != 2 {
			t.Errorf("after refusals: %+v", h)
		}
	})
}

// A record is read as it was written. One that cannot be read is an error.
func TestRecordFields(t *testing.T) {
	text := "confirmed\t1795000000002\t1795000000001\t1795000000000\t1795000000003\tbackend\tbuyer\ta 1 b@n 2\tlimit|x 3\tstatus 201\t4\tk|x\tp\t1000\to-1\tmain\ta 1\t1 2 3 4\tbuyer|x ip|y\t"
	r, err := record.Parse(text)
	if err != nil || r.Text() != text {
		t.Errorf("%q, error %v", r.Text(), err)
	}
	if !slices.Equal(r.Lines, []record.CellUnits{{Cell: "a", Units: 1}, {Cell: "b@n", Units: 2}}) || r.KeyTTL != time.Second || r.Version != 4 || r.Deadline.UnixMilli() != 1795000000002 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"", "held", "held\tx\t1\t1\t1\tm\tb\ta 1\t\t\t1\t", "held\t1\t1\t1\t1\tm\tb\ta x\t\t\t1\t", "held\t1\t1\t1\t1\tm\tb\ta\t\t\t1\t"} {
		if _, err := record.Parse(bad); err == nil {
			t.Errorf("Parse accepts %q", bad)
		}
	}
}

// The movements of one call are one entry. It can be read from any movement on, in pieces of
// any size, and is trimmed when all of it may go.
func TestJournalOfManyInOneCall(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		stocktest.Load(t, s, stocktest.OpenSale("s", 1))
		begins := time.UnixMilli(time.Now().UnixMilli())
		lengthen(t, s, b.Client(), 20_000, 100, begins)
		for _, after := range []int64{0, 1, 99, 100, 101, 5_050, 19_899, 19_999, 20_000} {
			for _, most := range []int{1, 100, 250, 5_000, 30_000} {
				got, err := s.Journal().Movements(stocktest.Soon(t), "s", after, most)
				if want := min(20_000-int(after), most); err != nil || len(got) != want {
					t.Fatalf("%d after %d: %d movements, error %v", most, after, len(got), err)
				}
				for i, m := range got {
					if m.Seq != after+1+int64(i) || m.Kind != "open" || m.ID != "1" {
						t.Fatalf("%d after %d: the %d-th is %+v", most, after, i, m)
					}
				}
			}
		}
		if gone, err := s.Journal().Trim(stocktest.Soon(t), "s", headOf(t, s), 5_050, false, 0); err != nil || gone != 5_000 {
			t.Fatalf("gone up to %d, error %v", gone, err)
		}
		h := headOf(t, s)
		if h.First != 5_001 || h.Length != 15_000 || !h.Began.Equal(begins.Add(5_100*time.Millisecond)) {
			t.Errorf("the journal is %+v, it should begin with the entry that has 5050", h)
		}
		for at, want := range map[int64]int64{5_100: 0, 5_101: 5_100, 5_199: 5_100, 5_201: 5_200, 20_000: 19_900, 20_001: 20_000} {
			if got, err := s.Journal().Before(stocktest.Soon(t), "s", h, begins.Add(time.Duration(at)*time.Millisecond)); err != nil || got != want {
				t.Errorf("before %d ms: %d, error %v; want %d", at, got, err, want)
			}
		}
	})
}

// An entry that begins with a number that was given before does not come from the scripts.
func TestJournalWithNumbersTwice(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		stocktest.Load(t, s, stocktest.OpenSale("s", 1))
		lengthen(t, s, b.Client(), 10, 5, time.Now())
		text := strings.TrimSuffix(strings.Repeat("open\t1\t\t\t\t\t\n", 3), "\n")
		if err := b.Client().Do(stocktest.Soon(t), "XADD", s.Shard().ShardKeys("s")[9], "12-0", "v", "1", "time", "1", "movements", text).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Journal().Movements(stocktest.Soon(t), "s", 0, 100); err == nil {
			t.Errorf("got %d movements", len(got))
		}
	})
}

// A line feed that another program has written into a record does not end the movement that
// carries the record: everything after it can be read.
func TestJournalOfLineFeeds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 10)
		stocktest.MustHold(t, e, "r1", "buyer", 2)
		records := e.Store.Shard().ShardKeys("s")[3]
		text, err := b.Client().HGet(stocktest.Soon(t), records, "r1").Result()
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Split(text, "\t")
		fields[6], fields[14] = "buy\ner", "order\n1" // the buyer's hash and the order's ref
		if err := b.Client().HSet(stocktest.Soon(t), records, "r1", strings.Join(fields, "\t")).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, "status_201"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Store.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "x", Restock: true}); err != nil {
			t.Fatal(err)
		}
		stocktest.MustHold(t, e, "r2", "other", 1)
		all, err := e.Store.Journal().Movements(stocktest.Soon(t), "s", 0, 100)
		if err != nil || len(all) < 4 {
			t.Fatalf("the journal is %+v, error %v", all, err)
		}
		for i, want := range []string{"confirmed r1 buy er ", "returned r1 buy er order 1", "held r2"} {
			m := all[len(all)-3+i]
			got := m.Kind + " " + m.ID
			if m.ID == "r1" {
				got += " " + m.Buyer + " "
			}
			if m.ID == "r1" && m.Record != nil {
				got += m.Record.Ref
			}
			if got != want {
				t.Errorf("it has %q, want %q", got, want)
			}
		}
	})
}

// The kinds of movements are those that docs/books.md lists.
func TestMovementKinds(t *testing.T) {
	text, err := os.ReadFile("../../../docs/books.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| kind | units move | id |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/books.md has no table of kinds")
	}
	var want []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		for _, kind := range strings.Fields(strings.Split(line, "|")[1]) {
			want = append(want, strings.Trim(kind, "`"))
		}
	}
	have := journal.MovementKinds()
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the kinds are %q, docs/books.md has %q", have, want)
	}
}
