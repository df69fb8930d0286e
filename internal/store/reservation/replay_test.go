package reservation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// A replica that lacks the newest movements, and gets them from the journal that an edge has
// read, has what the model has: whatever was done before and after, in whatever order.
func TestRandomReplay(t *testing.T) {
	t.Parallel()
	on := servers(t)[:1] // the embedded server has no replicas
	sales := 0
	rapid.Check(t, func(rt *rapid.T) {
		sales++
		d := &driver{twin: newTwin(rt, on, fmt.Sprintf("s%d", sales)), rt: rt, orphans: map[string]string{}, queues: true}
		d.setTime(noon)
		d.load()
		steps := map[string]func(*rapid.T){
			"1 reserve":   func(rt *rapid.T) { d.call(d.reserve(rt)) },
			"2 queue":     func(rt *rapid.T) { d.call(d.queue(rt)) },
			"2 settle":    func(rt *rapid.T) { d.call(d.settle(rt)) },
			"3 together":  d.together,
			"3 too late":  d.tooLate,
			"4 manage":    func(rt *rapid.T) { d.call(d.manage(rt)) },
			"5 clock":     d.clock,
			"6 expire":    d.expire,
			"7 repeat":    d.repeat,
			"9 edge dies": d.edgeDies,
		}
		for range rapid.IntRange(1, 3).Draw(rt, "failovers") {
			rt.Repeat(steps)
			replica := d.replicate()
			d.noFiles = true // the journal does not tell all of a sale file: an operator applies it again
			rt.Repeat(steps)
			d.noFiles = false
			d.failover(replica)
		}
		d.end()
	})
}

// A key belongs to the hold that took it when the time of a sold order's key was over, also on a
// replica that lacks the hold.
func TestReplayOfATakenKey(t *testing.T) {
	d := &driver{twin: newTwin(t, servers(t)[:1], "s1"), orphans: map[string]string{}}
	d.setTime(noon)
	d.load()
	sold := model.Reserve{
		ID: "sold", Version: d.model.Version, NotAfter: forever, HoldFor: 1000, Mode: "response", Buyer: "Ann",
		Guard: "k|1", Print: "p", Lines: []model.Line{{Cell: "a", Units: 1}},
	}
	d.call(sold)
	d.call(model.Confirm{ID: "sold", Word: "shop"})
	d.setTime(d.model.Ends)
	replica := d.replicate()
	taker := sold
	taker.ID, taker.Told = "taker", true
	d.call(taker)
	if d.model.Bindings["k|1"] != "taker" {
		t.Fatalf("k|1 belongs to %q", d.model.Bindings["k|1"])
	}
	d.failover(replica)
}

// A ref that an order has got back stays the order's when a cart of the same ref is held again after
// a swap, also on a replica that lacks that.
func TestReplayOfACartThatIsHeldAgain(t *testing.T) {
	d := &driver{twin: newTwin(t, servers(t)[:1], "s1"), orphans: map[string]string{}}
	d.setTime(noon)
	d.load()
	cart := func(id string) model.Reserve {
		return model.Reserve{
			ID: id, Version: d.model.Version, NotAfter: forever, HoldFor: 60_000, Mode: "backend", Buyer: "Ann",
			Ref: "o1", Lines: []model.Line{{Cell: "a", Units: 1}},
		}
	}
	d.call(cart("first"))
	d.call(model.Release{ID: "first", Word: "shop"})
	d.call(cart("second"))
	another := cart("third")
	another.Lines[0].Units = 2
	d.call(model.Swap{Old: "second", New: another})
	d.call(model.Confirm{ID: "first", Word: "operator"})
	if owner := d.model.Bindings["b|Ann|o1"]; owner != "first" {
		t.Fatalf("the ref belongs to %q", owner)
	}
	replica := d.replicate()
	d.call(model.Release{ID: "third", Word: "shop"})
	if len(d.among(model.Held)) != 1 {
		t.Fatalf("held: %v", d.among(model.Held))
	}
	d.failover(replica)
}

// image is what a replica has.
type image struct {
	keys  []string // DUMP of each; empty: there is none
	model *model.Shard
}

// replicate takes an image of the sale, as a replica that gets nothing more.
func (d *driver) replicate() image {
	d.t.Helper()
	s := d.servers[0]
	i := image{model: d.model.Clone()}
	for _, key := range s.store.Shard().ShardKeys(d.sale) {
		text, _ := s.client.Dump(background, key).Result() // nil: there is no such key
		i.keys = append(i.keys, text)
	}
	return i
}

// failover puts the image in the place of the sale, as a replica that is promoted, and gives
// it the journal that it lacks.
func (d *driver) failover(replica image) {
	d.t.Helper()
	s := d.servers[0]
	must := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatalf("%v", err)
		}
	}
	keys, seq := s.store.Shard().FenceKeys(d.sale), len(replica.model.Journal)
	entries, err := s.client.XRange(background, keys[shard.JournalKey], fmt.Sprintf("%d-0", seq+1), "+").Result()
	must(err)
	must(s.client.Del(background, keys...).Err())
	for i, text := range replica.keys {
		if text != "" {
			must(s.client.RestoreReplace(background, keys[i], 0, text).Err())
		}
	}
	const former = "0123456789abcdef0123456789abcdef01234567"
	term := fmt.Sprintf("%d:1:%s:1", d.model.Epoch, former)
	meta := keys[shard.MetaKey]
	must(s.client.HSet(background, meta, "term", term, "terms", term, "replid", former, "run_id", former, "beat", d.model.Time).Err())

	s.store.Shard().Clock(d.sale).Adopt(term, int64(len(d.model.Journal)))

	var tail []any
	for _, e := range entries {
		number, _ := strings.CutSuffix(e.ID, "-0")
		tail = append(tail, number, e.Values["time"], e.Values["movements"])
	}
	beat := &shard.Beat{Edge: "edge", Does: "ready", Known: int64(len(d.model.Journal)), Wait: time.Minute, Tail: tail}
	for n := 0; ; n++ {
		reply, _, _, err := s.store.Shard().Beat(background, d.sale, beat)
		must(err)
		if reply.Code() == lua.OK {
			break
		}
		if n > len(entries) || reply.Code() != lua.Fenced || reply.Number(4) != 0 {
			d.t.Fatalf("the fence says %v after %d calls with %d entries: %v", reply, n, len(entries), entries)
		}
		beat.Tail = nil
	}

	// What a fence leaves is not of the sale, and the clock is what this server makes of its
	// own time.
	must(s.client.HDel(background, meta, "term", "terms", "replid", "run_id", "beat", "fence", "fenced", "came", "lead").Err())
	if d.model.LeadKept {
		must(s.client.HSet(background, meta, "lead", d.model.Lead).Err())
	}
	must(s.client.Del(background, keys[shard.EdgesKey:]...).Err())
	must(s.client.HSet(background, meta, "clock", d.model.Clock).Err())
	// Bindings of a buyer and lines last until the attempt is answered, and no movement tells
	// when that was.
	maps.DeleteFunc(d.model.Bindings, func(field, _ string) bool { return strings.HasPrefix(field, "d|") })
	bindings, err := s.client.HKeys(background, keys[shard.BindingsKey]).Result()
	must(err)
	for _, field := range bindings {
		if strings.HasPrefix(field, "d|") {
			must(s.client.HDel(background, keys[shard.BindingsKey], field).Err())
		}
	}
	// A tombstone keeps a reserve request out that comes late. No movement tells of it.
	maps.DeleteFunc(d.model.Records, func(_ string, r *model.Record) bool { return r.State == model.Tombstone })
	tombstones, err := s.client.ZRange(background, keys[shard.TombstonesKey], 0, -1).Result()
	must(err)
	for _, id := range tombstones {
		must(s.client.ZRem(background, keys[shard.TombstonesKey], id).Err())
		must(s.client.HDel(background, keys[shard.RecordsKey], id).Err())
	}
	// Whose turn it is, and which edges live, is in no movement.
	d.model.Queue = replica.model.QueueAfter(d.model.Journal[seq:])
	fields, err := s.client.HKeys(background, keys[shard.QueueKey]).Result()
	must(err)
	for _, field := range fields {
		if strings.HasPrefix(field, "e|") || strings.HasPrefix(field, "t|") || strings.HasPrefix(field, "g|") {
			must(s.client.HDel(background, keys[shard.QueueKey], field).Err())
		}
	}
	d.checkLine(s)
	after, err := stocktest.ReadRaw(background, s.client, keys, 0)
	must(err)
	d.prune(keys[shard.UnpaidKey], after, entries)
	if err := after.Differs(stocktest.Expected(d.model, 0)); err != nil {
		d.t.Fatalf("after %d movements, with %v: %v", seq, entries, err)
	}
	must(after.Audit(after.Journal))
	d.before[0] = after
}

// prune drops the times of counters of unpaid holds that a reserve has dropped, because they
// do not count: no movement tells of that. All others must be those of the model.
func (d *driver) prune(key string, after *stocktest.Raw, tail []redis.XMessage) {
	d.t.Helper()
	want := stocktest.Expected(d.model, 0).Unpaid
	for field, text := range after.Unpaid {
		reserved := slices.ContainsFunc(tail, func(e redis.XMessage) bool {
			movements := strings.Split(e.Values["movements"].(string), "\n") // a swap releases another cart first
			return slices.ContainsFunc(movements, func(m string) bool {
				return strings.HasPrefix(m, "held\t") && strings.Contains(m, field)
			})
		})
		words := strings.Fields(text)
		for _, time := range strings.Fields(want[field]) {
			at := slices.Index(words, time)
			if at < 0 {
				d.t.Fatalf("the counter %s is %s, want %s", field, text, want[field])
			}
			words = slices.Delete(words, at, at+1)
		}
		if len(words) > 0 && want[field] == "" && words[0] == "0" {
			words = words[1:]
		}
		if len(words) == 0 || !reserved {
			continue
		}
		if want[field] == "" {
			delete(after.Unpaid, field)
			d.servers[0].client.HDel(background, key, field)
			continue
		}
		after.Unpaid[field] = want[field]
		d.servers[0].client.HSet(background, key, field, want[field])
	}
}
