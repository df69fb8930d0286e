package queue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// A rebuild brings back holds, and nothing of the line. What was at the shop is there still: as many orders
// go there as may, and no more.
func TestAtOnceAfterARebuild(t *testing.T) {
	for _, what := range []string{"a new order", "an order that waits again", "an order that the shop puts off"} {
		t.Run(what, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, b redistest.Backend) {
				a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
				a.line("r1", "r2")
				keys := a.Store.Shard().ShardKeys("s")
				if err := b.Client().Del(stocktest.Soon(t), keys[shard.LineKey:shard.QueueKey+1]...).Err(); err != nil {
					t.Fatal(err)
				}
				if err := b.Client().HDel(stocktest.Soon(t), keys[shard.MetaKey], "queue").Err(); err != nil {
					t.Fatal(err)
				}
				next := "r2"
				switch what {
				case "a new order":
					if err := a.queue.Cancel(stocktest.Soon(t), "s", "r2", "left"); err != nil {
						t.Fatal(err)
					}
					if next = "r3"; a.put(next, a.options()).State != record.Waiting {
						t.Error("a new order goes to the shop beside the one that is there")
					}
				default:
					packed, err := a.queue.Pack("s", "r2", &queue.Order{Gate: "gate"})
					if err != nil {
						t.Fatal(err)
					}
					if _, _, err := a.Store.Do(stocktest.Soon(t), "s", shard.Op(lua.Rejoin, "r2", "A", "gate", packed)); err != nil {
						t.Fatal(err)
					}
				}
				if st := a.show(); st.Waiting != 1 || st.AtShop != 1 {
					t.Errorf("the line is %+v", st)
				}
				a.gets("A")
				if what == "an order that the shop puts off" {
					if err := a.again("r1", 0, 0); err != nil {
						t.Fatal(err)
					}
					a.gets("A", "r1 1")
					a.mustSend("r1", 1)
				}
				a.confirm("r1")
				a.gets("A", next+" 1")
				a.mustSend(next, 1)
				a.confirm(next)
				a.balanced(b, 0, 0)
			})
		})
	}
}

// An order is at the shop no more once its outcome is known, also where the same call is the first to
// find out after a rebuild that it is there.
func TestConfirmedWithTheFirstToWaitAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		a.line("r1", "r2")
		ctx, keys := stocktest.Soon(t), a.Store.Shard().ShardKeys("s")
		if err := b.Client().Del(ctx, keys[shard.LineKey:shard.QueueKey+1]...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.Client().HDel(ctx, keys[shard.MetaKey], "queue").Err(); err != nil {
			t.Fatal(err)
		}
		packed, err := a.queue.Pack("s", "r2", &queue.Order{Gate: "gate"})
		if err != nil {
			t.Fatal(err)
		}
		s := a.Store.Shard()
		if _, _, err := s.RunWith(ctx, 0, "s", shard.Op(lua.Rejoin, "r2", "A", "gate", packed), shard.Op(lua.Confirm, "r1", "shop", "", "")); err != nil {
			t.Fatal(err)
		}
		if st := a.show(); st.Waiting != 1 || st.AtShop != 0 {
			t.Errorf("the line is %+v", st)
		}
		a.gets("A", "r2 1")
		a.mustSend("r2", 1)
		a.confirm("r2")
		a.balanced(b, 0, 0)
	})
}

// What an edge had that a fence has waited for in vain is counted down once: neither more orders are at
// the shop than may be, nor does what waits take more memory.
func TestLostEdgeIsCountedOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		pace := reservation.Pace{AtOnce: 4}
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 20), pace)
		lost := quiet(t, "B", stocktest.Ready(t, stocktest.Options(b)), pace)
		ctx, c, keys := stocktest.Soon(t), b.Client(), a.Store.Shard().ShardKeys("s")
		a.line("a1", "a2", "a3", "a4")
		lost.line("b1", "b2")
		a.line("a5", "a6", "a7", "a8")
		lost.line("b3")
		a.gets("A")
		a.confirm("a1")
		a.confirm("a2")
		if got := lost.ask("B", pace, 0, "gate"); !slices.Equal(got, []string{"b1 1", "b2 1"}) {
			t.Fatalf("B gets %q", got)
		}
		if err := c.HSet(ctx, keys[shard.MetaKey], "absent", "1 B", "fenced", "1 1 9000000000000000 0 0 1 0").Err(); err != nil {
			t.Fatal(err)
		}
		a.gets("A", "a5 1", "a6 1")
		if st := a.show(); st.Waiting != 2 || st.AtShop != 4 {
			t.Errorf("the line is %+v", st)
		}
		packed := int64(0)
		for field, text := range c.HGetAll(ctx, keys[shard.LineKey+1]).Val() {
			if strings.HasPrefix(field, "p|") {
				packed += int64(len(text))
			}
		}
		if st := a.show(); st.Bytes != packed {
			t.Errorf("%d bytes are counted, and there are %d", st.Bytes, packed)
		}
	})
}
