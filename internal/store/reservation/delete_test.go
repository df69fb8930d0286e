package reservation_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// meanwhile does something once, before or after a client's command.
type meanwhile struct {
	before, after string // the command
	do            func()
}

func (m *meanwhile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meanwhile) at(name string, of *string) {
	if name == *of && name != "" {
		*of = ""
		m.do()
	}
}

func (m *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		m.at(cmd.Name(), &m.before)
		err := next(ctx, cmd)
		m.at(cmd.Name(), &m.after)
		return err
	}
}

func (m *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Name() == "srem" }) {
			m.at("srem", &m.before)
		}
		return next(ctx, cmds)
	}
}

// However two calls that delete a sale meet, and one that loads it again, the sale is deleted, its
// epoch is noted, and the index names a sale if and only if Redis has it.
func TestDeletedTogether(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile
		behind bool // the ledger lacks movements, which the first call minds
		anew   bool
	}{
		"another call deletes it first":                            {meanwhile{after: "hset"}, false, false},
		"another call deletes it first, and it is loaded again":    {meanwhile{after: "hset"}, false, true},
		"it is refused, and another call is not":                   {meanwhile{before: "hdel"}, true, false},
		"it is loaded again before its name is taken out":          {meanwhile{before: "srem"}, false, true},
		"another call has deleted it before its name is taken out": {meanwhile{before: "srem"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, b := stocktest.Soon(t), redistest.Start(t)
			first, other := stocktest.OpenStore(t, stocktest.Options(b)), stocktest.OpenStore(t, stocktest.Options(b))
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			stocktest.Load(t, other, stocktest.OpenSale("s", 9))
			must(other.SetStatus(ctx, "s", sale.Closed, "test"))
			head, err := other.Journal().Head(ctx, "s")
			must(err)
			if test.behind {
				must(other.Journal().Acknowledge(ctx, "s", head.Epoch, 1))
			}
			test.do = func() {
				must(other.Delete(ctx, "s", true))
				if test.anew {
					_, err := other.Apply(ctx, stocktest.OpenSale("s", 9), reservation.ApplyOptions{By: "test"})
					must(err)
				}
			}
			if test.before == "srem" {
				test.do = func() {
					if !test.anew {
						must(other.Delete(ctx, "s", false))
						return
					}
					_, err := other.Apply(ctx, stocktest.OpenSale("s", 9), reservation.ApplyOptions{By: "test", New: true})
					must(err)
				}
			}
			shard.Redis(first.Shard()).AddHook(&test.meanwhile)
			must(first.Delete(ctx, "s", false))
			if test.before+test.after != "" {
				t.Fatal("nothing happened meanwhile: the test proves nothing")
			}
			if deleted, err := other.Journal().DeletedEpoch(ctx, "s"); err != nil || deleted != head.Epoch {
				t.Errorf("the note of the deleted sale has epoch %d, want %d: %v", deleted, head.Epoch, err)
			}
			ids, err := other.Journal().Sales(ctx)
			if must(err); slices.Contains(ids, "s") != test.anew {
				t.Errorf("the index names %v", ids)
			}
			gone, err := other.Journal().Deleted(ctx)
			if must(err); (gone["s"] != "") == test.anew {
				t.Errorf("deleted, and not loaded again, are %v", gone)
			}
		})
	}
}

// A sale that is not closed, or that is being rebuilt, is not deleted: the error says which it is.
func TestWhatIsNotDeleted(t *testing.T) {
	const rebuilt, notClosed = "sale s is being rebuilt: finish that first", "only a closed sale is deleted"
	for name, test := range map[string]struct {
		status sale.Status
		field  string // of meta, as a rebuild leaves it
		says   string
	}{
		"open":          {sale.Open, "", "sale s is open: " + notClosed},
		"paused":        {sale.Paused, "", "sale s is paused: " + notClosed},
		"being rebuilt": {sale.Closed, "restoring", rebuilt},
		"being merged":  {sale.Closed, "merging", rebuilt},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, b := stocktest.Soon(t), redistest.Start(t)
			s := stocktest.OpenStore(t, stocktest.Options(b))
			stocktest.Load(t, s, stocktest.OpenSale("s", 9))
			if err := s.SetStatus(ctx, "s", test.status, "test"); err != nil {
				t.Fatal(err)
			}
			if test.field != "" {
				if err := shard.Redis(s.Shard()).HSet(ctx, s.Shard().ShardKeys("s")[shard.MetaKey], test.field, 5).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Delete(ctx, "s", true); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %v", err)
			}
			if ids, err := s.Journal().Sales(ctx); err != nil || !slices.Contains(ids, "s") {
				t.Errorf("the index names %v, %v", ids, err)
			}
		})
	}
}
