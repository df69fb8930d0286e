package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/child"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/store/move"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

const units = 10

func at(r *redistest.Server, prefix string) shard.Options {
	return shard.Options{Addresses: []string{r.Addr()}, Timeout: time.Minute, Prefix: prefix}
}

// sold is a paused sale of 10 units with a hold that waits for its payment, one in doubt, and one that is sold.
func sold(t *testing.T, store *reservation.Store) {
	t.Helper()
	stocktest.Load(t, store, stocktest.OpenSale("s", units))
	for _, id := range []string{"held", "doubt", "sold"} {
		reserve(t, store, id)
	}
	ctx := stocktest.Soon(t)
	if _, err := store.Doubt(ctx, "s", "doubt", "timeout"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Confirm(ctx, "s", "sold", reservation.SourceShop, "paid"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := store.Schedule(ctx, "s", reservation.PlannedAct{At: time.Now().Add(time.Hour).Format(time.RFC3339), Act: "resume"}, "me"); err != nil {
		t.Fatal(err)
	}
	setStatus(t, store, sale.Paused)
}

func reserve(t *testing.T, store *reservation.Store, id string) {
	t.Helper()
	_, refusal, err := store.Reserve(stocktest.Soon(t), &reservation.ReserveRequest{
		ID: id, Sale: "s", Version: versionOf(t, store), Buyer: id, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour, Mode: record.ModeBackend,
	})
	if err != nil || refusal != nil {
		t.Fatal(refusal, err)
	}
}

func versionOf(t *testing.T, store *reservation.Store) int64 {
	t.Helper()
	s, err := store.Load(stocktest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	return s.Version
}

func setStatus(t *testing.T, store *reservation.Store, status sale.Status) {
	t.Helper()
	if err := store.SetStatus(stocktest.Soon(t), "s", status, "me"); err != nil {
		t.Fatal(err)
	}
}

// sells reports whether a store sells a unit of what sold has left, if it is opened.
func sells(t *testing.T, store *reservation.Store, id string) bool {
	t.Helper()
	if err := store.SetStatus(stocktest.Soon(t), "s", sale.Open, "me"); errors.Is(err, shard.ErrMoved) || errors.Is(err, shard.ErrNoSale) {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	reserve(t, store, id)
	for _, of := range []string{"held", "doubt"} {
		if _, err := store.Confirm(stocktest.Soon(t), "s", of, reservation.SourceShop, "paid"); err != nil {
			t.Error(of, err)
		}
	}
	if _, err := store.Confirm(stocktest.Soon(t), "s", id, reservation.SourceShop, "paid"); err != nil {
		t.Error(err)
	}
	raw := rawOf(t, store)
	if err := raw.Audit(raw.Journal); err != nil {
		t.Error(err)
	}
	if want := fmt.Sprint(units, units-4, 0, 0, 4); raw.Cells["a"] != want {
		t.Errorf("after one more there is %s, want %s", raw.Cells["a"], want)
	}
	return true
}

func rawOf(t *testing.T, store *reservation.Store) *stocktest.Raw {
	t.Helper()
	raw, err := stocktest.ReadRaw(stocktest.Soon(t), shard.Redis(store.Shard()), store.Shard().ShardKeys("s"), 0)
	if err != nil {
		t.Fatal(err)
	}
	delete(raw.Meta, "clock") // the last call of a script
	return raw
}

func destination(t *testing.T, dir string, o shard.Options) *move.Destination {
	t.Helper()
	to, err := move.OpenDestination(stocktest.Soon(t), dir, o.Prefix, o, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	return to
}

func options(store *reservation.Store, to *move.Destination) move.Options {
	return move.Options{From: store, Here: "here", Edge: "me", Backlog: func() int { return 0 }, Stage: func(string) {}, To: to, By: "me"}
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "stock")
}

// inDir opens a directory's stock, and returns it with what ends its server.
func inDir(t *testing.T, dir, prefix string) (*reservation.Store, func()) {
	t.Helper()
	s, err := child.Open(child.Options{Dir: dir, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	o := shard.Options{Timeout: time.Minute, Prefix: prefix}
	s.Connect(&o)
	store, err := reservation.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { store.Close(); s.Close() })
	t.Cleanup(end)
	return store, end
}

// Stock moves from a directory to a Redis and back. Nothing in it differs, and it sells in one place only.
func TestMoveAndBack(t *testing.T) {
	const prefix = "shop*[1]"
	dir, server := shortDir(t), redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	if err := server.Client().Set(stocktest.Soon(t), "shopper:1", "of others", 0).Err(); err != nil {
		t.Fatal(err)
	}
	here, end := inDir(t, dir, prefix)
	sold(t, here)
	secret := new(identity.Secret)
	deny := lists.New(here.Shard())
	var entries []lists.Entry
	for i := range 3000 {
		entries = append(entries, lists.Entry{Kind: "buyer", Value: fmt.Sprint("bot", i)})
	}
	if _, err := deny.Add(stocktest.Soon(t), secret, "bots", entries); err != nil {
		t.Fatal(err)
	}
	if err := here.Shard().StoreAnswer(stocktest.Soon(t), "s", "sold", []byte("thanks"), time.Hour); err != nil {
		t.Fatal(err)
	}
	meta := here.Shard().ListKey("bots", "meta") // an edge may have written no schema
	if n, err := shard.Redis(here.Shard()).HDel(stocktest.Soon(t), meta, "schema").Result(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	before := rawOf(t, here)
	to := destination(t, "", at(server, prefix))
	done, err := move.Run(stocktest.Soon(t), options(here, to))
	if err != nil || !slices.Equal(done.Sales, []string{"s"}) || done.Where != server.Addr() {
		t.Fatal(done, err)
	}
	there := stocktest.OpenStore(t, at(server, prefix))
	if after := rawOf(t, there); !reflect.DeepEqual(before, after) {
		t.Errorf("it was\n%+v\nand is\n%+v", before, after)
	}
	if answer, err := there.Shard().StoredAnswer(stocktest.Soon(t), "s", "sold"); err != nil || string(answer) != "thanks" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if left, err := shard.Redis(there.Shard()).PTTL(stocktest.Soon(t), there.Shard().AnswerKey("s", "sold")).Result(); err != nil || left <= 0 || left > time.Hour {
		t.Errorf("the answer expires in %v, %v", left, err)
	}
	if n, err := lists.New(there.Shard()).Add(stocktest.Soon(t), secret, "bots", entries); err != nil || n != 0 {
		t.Errorf("%d entries of the list were not moved, %v", n, err)
	}
	if sells(t, here, "more") {
		t.Error("the source sells")
	}
	if _, err := deny.Add(stocktest.Soon(t), secret, "bots", []lists.Entry{{Kind: "buyer", Value: "x"}}); !errors.Is(err, shard.ErrMoved) {
		t.Errorf("the list at the source takes an entry: %v", err)
	}
	if err := move.Undo(stocktest.Soon(t), here); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), server.Addr()) {
		t.Errorf("undone: %v", err)
	}
	if done, err := move.Run(stocktest.Soon(t), options(here, to)); err != nil || !done.Before {
		t.Errorf("the same again: %+v, %v", done, err)
	}
	end()

	if !sells(t, there, "more") {
		t.Fatal("the destination does not sell")
	}
	setStatus(t, there, sale.Paused)
	before = rawOf(t, there)
	back := destination(t, dir, shard.Options{Prefix: prefix})
	if _, err := move.Run(stocktest.Soon(t), options(there, back)); err != nil {
		t.Fatal(err)
	}
	if err := back.Close(); err != nil {
		t.Error(err)
	}
	again, _ := inDir(t, dir, prefix)
	if after := rawOf(t, again); !reflect.DeepEqual(before, after) {
		t.Errorf("it was\n%+v\nand is\n%+v", before, after)
	}
	setStatus(t, again, sale.Open)
	if err := there.SetStatus(stocktest.Soon(t), "s", sale.Open, "me"); !errors.Is(err, shard.ErrMoved) {
		t.Errorf("both sell: %v", err)
	}
	if text, err := server.Client().Get(stocktest.Soon(t), "shopper:1").Result(); err != nil || text != "of others" {
		t.Errorf("a key of others is %q, %v", text, err)
	}
}

// Orders that wait in a line wait in the same order on the nodes of a cluster; one that the shop has is waited for. A journal
// whose entries have all been dropped goes on with the next number.
func TestMoveIntoCluster(t *testing.T) {
	from, nodes := redistest.Start(t), redistest.Cluster(t, 3)
	here := stocktest.OpenStore(t, at(from, "p"))
	stocktest.Load(t, here, stocktest.OpenSale("s", units))
	for _, id := range []string{"first", "second", "third"} {
		_, refusal, err := here.Reserve(stocktest.Soon(t), &reservation.ReserveRequest{
			ID: id, Sale: "s", Version: versionOf(t, here), Buyer: id, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour, Mode: record.ModeResponse,
			Queue: &reservation.QueueOptions{Pace: reservation.Pace{AtOnce: 1}, Most: 10, Memory: 1 << 20, Longest: time.Hour, Edge: "e", Gate: "g", Order: []byte(id)},
		})
		if refusal != nil || err != nil {
			t.Fatal(refusal, err)
		}
	}
	setStatus(t, here, sale.Paused)
	cluster := shard.Options{Cluster: true, Timeout: time.Minute, Prefix: "p"}
	for _, node := range nodes {
		cluster.Addresses = append(cluster.Addresses, node.Addr())
	}
	o := options(here, destination(t, "", cluster))
	ctx, waits := context.WithCancel(stocktest.Soon(t))
	var said string
	o.Stage = func(what string) { said = what; waits() }
	if _, err := move.Run(ctx, o); !errors.Is(err, shard.ErrRefused) || !strings.Contains(said, "the shop has 1 orders from the line of sale s") {
		t.Fatalf("%v, it waits for %q", err, said)
	}
	if _, err := queue.Pause(stocktest.Soon(t), here, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Release(stocktest.Soon(t), "s", "first", reservation.SourceAnswer, "no"); err != nil {
		t.Fatal(err)
	}
	journal := here.Shard().ShardKeys("s")[shard.JournalKey]
	if err := from.Client().XTrimMaxLen(stocktest.Soon(t), journal, 0).Err(); err != nil {
		t.Fatal(err)
	}
	before, err := queue.Show(stocktest.Soon(t), here, "s")
	if err != nil || before.Waiting != 2 || before.AtShop != 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	o.Stage = func(string) {}
	if _, err := move.Run(stocktest.Soon(t), o); err != nil {
		t.Fatal(err)
	}
	there := stocktest.OpenStore(t, cluster)
	if after, err := queue.Show(stocktest.Soon(t), there, "s"); err != nil || after.Waiting != before.Waiting || after.Bytes != before.Bytes {
		t.Errorf("its line was %+v and is %+v, %v", before, after, err)
	}
	if was, is := rawOf(t, here), rawOf(t, there); !reflect.DeepEqual(was.Records, is.Records) || !reflect.DeepEqual(was.Cells, is.Cells) {
		t.Errorf("it was %+v and is %+v", was, is)
	}
	for _, place := range []int{shard.LineKey, shard.OrdersKey} {
		was, _, err := here.Shard().Data("s").Scan(stocktest.Soon(t), place, 0, "", 100)
		is, _, err2 := there.Shard().Data("s").Scan(stocktest.Soon(t), place, 0, "", 100)
		slices.Sort(was)
		slices.Sort(is)
		if err != nil || err2 != nil || len(was) == 0 || !slices.Equal(was, is) {
			t.Errorf("it was %q and is %q", was, is)
		}
	}
	seq := rawOf(t, there).Meta["seq"]
	setStatus(t, there, sale.Open)
	raw := rawOf(t, there)
	if n, _ := strconv.Atoi(seq); len(raw.Journal) != 1 || raw.Journal[0].Seq != int64(n)+1 {
		t.Errorf("after %s the journal has %+v", seq, raw.Journal)
	}
}

// dying lets n commands pass. Then the process is dead: of the last one it never learns the answer.
type dying struct {
	left      *atomic.Int64
	delivered bool // the last one reaches Redis
}

var errDead = errors.New("the process is dead")

func (d dying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d dying) pass() (deliver, live bool) {
	n := d.left.Add(-1)
	return n >= 0 || n == -1 && d.delivered, n >= 0
}

func (d dying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		deliver, live := d.pass()
		if deliver {
			if err := next(ctx, cmd); live {
				return err
			}
		}
		cmd.SetErr(errDead)
		return errDead
	}
}

func (d dying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		deliver, live := d.pass()
		if deliver {
			if err := next(ctx, cmds); live {
				return err
			}
		}
		for _, cmd := range cmds {
			cmd.SetErr(errDead)
		}
		return errDead
	}
}

// A process may die at each command: both never sell, and the same again, or an undo, goes on from there.
func TestMoverDies(t *testing.T) {
	from, into := redistest.Start(t), redistest.Start(t)
	for _, delivered := range []bool{false, true} {
		for n, finished := 0, false; !finished; n++ {
			prefix := fmt.Sprintf("p%d%t", n, delivered)
			here := stocktest.OpenStore(t, at(from, prefix))
			there := stocktest.OpenStore(t, at(into, prefix))
			sold(t, here)

			dead := stocktest.OpenStore(t, at(from, prefix))
			to := destination(t, "", at(into, prefix))
			d := dying{new(atomic.Int64), delivered}
			d.left.Store(int64(n))
			shard.Redis(dead.Shard()).AddHook(d)
			shard.Redis(to.Client()).AddHook(d)
			_, err := move.Run(stocktest.Soon(t), options(dead, to))
			finished = err == nil
			left := noted(t, here) == shard.Left
			if !left && noted(t, there) == shard.Came {
				t.Errorf("after %d commands the destination may sell, and the source has not noted that", n)
			}
			switch {
			case n%2 == 0 && !left: // give it up
				if err := move.Undo(stocktest.Soon(t), here); err != nil && !errors.Is(err, shard.ErrRefused) {
					t.Fatalf("after %d commands: %v", n, err)
				}
				if !sells(t, here, "more") || sells(t, there, "more") {
					t.Fatalf("after %d commands, undone, not the source alone sells", n)
				}
				setStatus(t, here, sale.Paused)
			default:
				if left && sells(t, here, "more") {
					t.Fatalf("after %d commands both sell", n)
				}
			}
			if _, err := move.Run(stocktest.Soon(t), options(here, destination(t, "", at(into, prefix)))); err != nil {
				t.Fatalf("again after %d commands: %v", n, err)
			}
			if n%2 == 1 || left {
				if sells(t, here, "more") || !sells(t, there, "more") {
					t.Fatalf("after %d commands and the same again, not the destination alone sells", n)
				}
			} else if err := here.SetStatus(stocktest.Soon(t), "s", sale.Open, "me"); !errors.Is(err, shard.ErrMoved) {
				t.Fatalf("after %d commands, undone and moved, both sell: %v", n, err)
			}
		}
	}
}

func noted(t *testing.T, s *reservation.Store) shard.MoveStage {
	t.Helper()
	m, err := s.Shard().Move(stocktest.Soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if m == nil {
		return ""
	}
	return m.Stage
}

// A move that cannot succeed is refused before anything is frozen, and the sale can go on.
func TestMoveRefuses(t *testing.T) {
	from, into, evicts := redistest.Start(t), redistest.Start(t), redistest.Start(t, redistest.Config("maxmemory 50mb", "maxmemory-policy allkeys-lru"))
	for name, c := range map[string]struct {
		prepare func(t *testing.T, here, there *reservation.Store, o *move.Options)
		want    string
	}{
		"an open sale": {func(t *testing.T, here, _ *reservation.Store, _ *move.Options) { setStatus(t, here, sale.Open) }, "sale s is open: pause it first"},
		"the shop is asked": {func(t *testing.T, here, _ *reservation.Store, o *move.Options) {
			setStatus(t, here, sale.Open)
			_, _, err := here.Reserve(stocktest.Soon(t), &reservation.ReserveRequest{
				ID: "asked", Sale: "s", Version: versionOf(t, here), Buyer: "x", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour, Mode: record.ModeResponse,
			})
			if err != nil {
				t.Fatal(err)
			}
			setStatus(t, here, sale.Paused)
		}, "the shop is answering orders of sale s"},
		"outcomes wait": {func(_ *testing.T, _, _ *reservation.Store, o *move.Options) { o.Backlog = func() int { return 3 } }, "3 outcomes"},
		"another edge": {func(t *testing.T, here, _ *reservation.Store, _ *move.Options) {
			if _, _, _, err := here.Shard().Beat(stocktest.Soon(t), "s", &shard.Beat{Edge: "other", Does: "beat"}); err != nil {
				t.Fatal(err)
			}
		}, "other edges use this stock, or did until a minute ago: other"},
		"stock there": {func(t *testing.T, _, there *reservation.Store, _ *move.Options) {
			stocktest.Load(t, there, stocktest.OpenSale("other", 1))
		}, "only to where there is none"},
		"it evicts": {func(t *testing.T, here, _ *reservation.Store, o *move.Options) {
			o.To = destination(t, "", at(evicts, here.Shard().Options.Prefix))
		}, "maxmemory-policy is allkeys-lru"},
		"to itself": {func(t *testing.T, here, _ *reservation.Store, o *move.Options) {
			o.To = destination(t, "", at(from, here.Shard().Options.Prefix))
		}, "only to where there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ReplaceAll(name, " ", "-")
			here, there := stocktest.OpenStore(t, at(from, prefix)), stocktest.OpenStore(t, at(into, prefix))
			sold(t, here)
			o := options(here, destination(t, "", at(into, prefix)))
			ctx, waits := context.WithCancel(stocktest.Soon(t))
			o.Stage = func(string) { waits() }
			c.prepare(t, here, there, &o)
			if _, err := move.Run(ctx, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if m, err := here.Shard().Move(stocktest.Soon(t)); err != nil || m != nil {
				t.Errorf("it notes %+v, %v", m, err)
			}
			setStatus(t, here, sale.Open)
		})
	}
}

// A move needs the usual rights, and transactions.
func TestMoveRights(t *testing.T) {
	mover := redistest.Config("user mover on >secret ~p:* &p:* +@read +@write +@scripting +@pubsub +info +time +wait +ping +@transaction")
	from, into := redistest.Start(t, mover), redistest.Start(t, mover)
	as := func(r *redistest.Server) shard.Options {
		o := at(r, "p")
		o.Username, o.Password = "mover", "secret"
		return o
	}
	here := stocktest.OpenStore(t, as(from))
	sold(t, here)
	if _, err := move.Run(stocktest.Soon(t), options(here, destination(t, "", as(into)))); err != nil {
		t.Fatal(err)
	}
	if sells(t, here, "more") || !sells(t, stocktest.OpenStore(t, as(into)), "more") {
		t.Error("not the destination alone sells")
	}
}

// A key that another process changes while it is copied is noticed, and the stock stays.
func TestMoveNoticesChanges(t *testing.T) {
	from, into := redistest.Start(t), redistest.Start(t)
	here := stocktest.OpenStore(t, at(from, "p"))
	sold(t, here)
	o := options(here, destination(t, "", at(into, "p")))
	shard.Redis(o.To.Client()).AddHook(after{"HSET", func() { // of the destination, so that the source is frozen
		if err := from.Client().HSet(stocktest.Soon(t), here.Shard().ShardKeys("s")[shard.CellsKey], "a", "1 1 0 0 0").Err(); err != nil {
			t.Error(err)
		}
	}})
	if _, err := move.Run(stocktest.Soon(t), o); !errors.Is(err, shard.ErrChanged) {
		t.Errorf("%v", err)
	}
	if stage := noted(t, here); stage != shard.Stays {
		t.Errorf("the source is %q", stage)
	}
	if keys, err := o.To.Client().StockKeys(stocktest.Soon(t)); err != nil || len(keys) > 0 {
		t.Errorf("the destination has %q, %v", keys, err)
	}
	setStatus(t, here, sale.Open)
}

// after calls do once a command has run.
type after struct {
	command string
	do      func()
}

func (after) DialHook(next redis.DialHook) redis.DialHook { return next }
func (after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.EqualFold(cmd.Name(), a.command) && strings.HasSuffix(fmt.Sprint(cmd.Args()[1]), ":records") {
			a.do()
		}
		return err
	}
}

// A note that Redis takes late, after the move was given up, has no effect: the stock would sell in both places.
func TestLateNote(t *testing.T) {
	from, into := redistest.Start(t), redistest.Start(t)
	here := stocktest.OpenStore(t, at(from, "p"))
	sold(t, here)
	mover := stocktest.OpenStore(t, at(from, "p"))
	shard.Redis(mover.Shard()).AddHook(before{"exec", func() {
		if err := move.Undo(stocktest.Soon(t), here); err != nil {
			t.Error(err)
		}
	}})
	if _, err := move.Run(stocktest.Soon(t), options(mover, destination(t, "", at(into, "p")))); !errors.Is(err, shard.ErrChanged) {
		t.Errorf("%v", err)
	}
	if stage := noted(t, here); stage != shard.Stays {
		t.Errorf("the source is %q", stage)
	}
	if !sells(t, here, "more") || sells(t, stocktest.OpenStore(t, at(into, "p")), "more") {
		t.Error("not the source alone sells")
	}
}

// before calls do before a transaction of one command.
type before struct {
	command string
	do      func()
}

func (before) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (before) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 3 && cmds[2].Name() == b.command && slices.Contains(cmds[1].Args(), any(string(shard.Left))) {
			b.do()
		}
		return next(ctx, cmds)
	}
}
