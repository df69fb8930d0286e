package reservation_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// server is a Redis whose clock the test steps.
type server struct {
	name    string
	store   *reservation.Store
	client  *redis.Client
	options shard.Options // of store
	scripts lua.Scripts
	setTime func(ms int64)
}

// servers starts a real redis-server and the embedded one. The clock of a real one
// cannot be stepped, so there the scripts read a key instead of TIME.
func servers(t *testing.T) []*server {
	b := redistest.Start(t)
	real := &server{name: "redis-server", client: b.Client(), scripts: *lua.Redis()}
	for _, what := range []*lua.Operation{lua.Reserve, lua.Adjust, lua.Confirm, lua.Fence} {
		s := real.scripts.Of(what)
		const asked = "call('TIME')"
		if strings.Count(s.Source, asked) != 1 {
			t.Fatalf("the scripts no longer ask for the time once, with %s", asked)
		}
		s.Source = strings.Replace(s.Source, asked, "call('HMGET', 'clock', 'seconds', 'micros')", 1)
		sum := sha1.Sum([]byte(s.Source))
		s.SHA = hex.EncodeToString(sum[:])
	}
	real.setTime = func(ms int64) {
		if err := real.client.HSet(stocktest.Soon(t), "clock", "seconds", ms/1000, "micros", ms%1000*1000+999).Err(); err != nil {
			t.Fatal(err)
		}
	}
	real.options = stocktest.Options(b)
	real.options.Scripts = &real.scripts
	real.store = stocktest.OpenStore(t, real.options)

	e := redistest.Embedded(t)
	embedded := &server{name: "embedded", client: e.Client(), options: stocktest.Options(e), scripts: *lua.Embedded()}
	embedded.store = stocktest.OpenStore(t, embedded.options)
	embedded.setTime = func(ms int64) { e.SetTime(time.UnixMilli(ms).Add(999 * time.Microsecond)) }
	return []*server{real, embedded}
}

// twin is one sale on several servers and in the model, which must agree after
// every step.
type twin struct {
	t       fatal
	servers []*server
	sale    string
	model   *model.Shard
	before  []*stocktest.Raw // what each server held after the last step
	journal [][]model.Entry  // all that each server's journal has told
}

type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newTwin(t fatal, on []*server, sale string) *twin {
	w := &twin{t: t, servers: on, sale: sale, model: model.New(), journal: make([][]model.Entry, len(on))}
	w.before = make([]*stocktest.Raw, len(on))
	for i := range w.before {
		w.before[i] = stocktest.Expected(w.model, 0)
	}
	return w
}

// setTime steps the clocks of all servers.
func (w *twin) setTime(ms int64) {
	w.model.Time = ms
	for _, s := range w.servers {
		s.setTime(ms)
	}
}

// run does operations in one call on every server and in the model, and checks
// every promise.
func (w *twin) run(ops ...model.Operation) []model.Reply {
	w.t.Helper()
	seen := len(w.model.Journal)
	want := make([]model.Reply, len(ops))
	calls := make([]reservation.Operation, len(ops))
	refused := true // every operation was, so nothing may have been written
	lead := w.model.Lead
	w.model.Begin()
	stepped := lead != w.model.Lead // which is stored, also by what is refused
	for i, op := range ops {
		want[i] = op.Run(w.model)
		calls[i] = wire(op)
		refused = refused && want[i][0] != "ok"
	}
	if err := w.model.Check(); err != nil {
		w.t.Fatalf("after %+v the model itself is wrong: %v", ops, err)
	}
	for i, s := range w.servers {
		now, seq, got, err := s.store.CallSeq(background, w.sale, w.latest(), calls...)
		if err != nil {
			w.t.Fatalf("%s: %+v: %v", s.name, ops, err)
		}
		if seq != int64(len(w.model.Journal)) {
			w.t.Fatalf("%s: the answer to %+v says that the journal is at %d, want %d", s.name, ops, seq, len(w.model.Journal))
		}
		if now != w.model.Time {
			w.t.Fatalf("%s: the time is %d, want %d", s.name, now, w.model.Time)
		}
		for j := range ops {
			if !reflect.DeepEqual(model.Reply(got[j]), want[j]) {
				w.t.Fatalf("%s: operation %d of %+v answers %v, want %v", s.name, j+1, ops, got[j], want[j])
			}
		}
		after, err := stocktest.ReadRaw(background, s.client, s.store.Shard().ShardKeys(w.sale), seen)
		if err != nil {
			w.t.Fatalf("%s: %v", s.name, err)
		}
		if err := after.Differs(stocktest.Expected(w.model, seen)); err != nil {
			w.t.Fatalf("%s: after %+v: %v", s.name, ops, err)
		}
		w.checkLine(s)
		w.journal[i] = append(w.journal[i], after.Journal...)
		if err := after.Audit(w.journal[i]); err != nil {
			w.t.Fatalf("%s: after %+v: %v", s.name, ops, err)
		}
		w.before[i].Journal = nil
		if refused && stepped {
			w.before[i].Meta["lead"] = strconv.FormatInt(w.model.Lead, 10)
		}
		if refused {
			if err := after.Differs(w.before[i]); err != nil {
				w.t.Fatalf("%s: %+v was refused and has changed something: %v", s.name, ops, err)
			}
		}
		w.before[i] = after
	}
	return want
}

// checkLine compares the line of a server, and what is at the shop, with the model.
func (w *twin) checkLine(s *server) {
	w.t.Helper()
	q := &w.model.Queue
	if !q.Kept {
		return
	}
	keys, pipe := s.store.Shard().ShardKeys(w.sale), s.client.Pipeline()
	line := pipe.ZRange(background, keys[shard.LineKey], 0, -1)
	orders := pipe.HGetAll(background, keys[shard.OrdersKey])
	atShop := pipe.ZRangeWithScores(background, keys[shard.AtShopKey], 0, -1)
	fields := pipe.HGetAll(background, keys[shard.QueueKey])
	if _, err := pipe.Exec(background); err != nil {
		w.t.Fatalf("%s: %v", s.name, err)
	}
	if !slices.Equal(line.Val(), q.Line()) {
		w.t.Fatalf("%s: the line is %v, want %v", s.name, line.Val(), q.Line())
	}
	want := map[string]string{}
	for id, o := range q.Orders {
		want[id] = fmt.Sprintf("%s %d %d %d %d %d %s %s %d", o.Home, o.Try, o.Size, o.Again, o.Since, o.Number, o.Taker, o.Gate, oneIf(o.Sent))
		if o.Size > 0 {
			want["p|"+id] = packed
		}
	}
	if !maps.Equal(orders.Val(), want) {
		w.t.Fatalf("%s: the orders are %v, want %v", s.name, orders.Val(), want)
	}
	got := map[string]int64{}
	for _, z := range atShop.Val() {
		got[z.Member.(string)] = int64(z.Score)
	}
	if !maps.Equal(got, q.AtShop) {
		w.t.Fatalf("%s: at the shop are %v, want %v", s.name, got, q.AtShop)
	}
	known := fields.Val()
	if known["bytes"] == "0" {
		delete(known, "bytes")
	}
	if !maps.Equal(known, q.Fields()) {
		w.t.Fatalf("%s: the queue is %v, want %v", s.name, known, q.Fields())
	}
}

// packed is what is to be sent of every order.
const packed = "packed"

// latest is what the caller expects of the clocks.
func (w *twin) latest() reservation.Latest {
	if w.model.Latest == 0 {
		return reservation.Latest{Shard: "", Own: ""}
	}
	return reservation.Latest{Shard: w.model.Latest, Own: w.model.LatestTime}
}

// lose takes all that the servers know of the sale.
func (w *twin) lose() {
	w.t.Helper()
	now := w.model.Time
	w.model = model.New()
	w.model.Time = now
	for i, s := range w.servers {
		if err := s.client.Del(background, s.store.Shard().ShardKeys(w.sale)...).Err(); err != nil {
			w.t.Fatalf("%s: %v", s.name, err)
		}
		w.before[i], w.journal[i] = stocktest.Expected(w.model, 0), nil
	}
}

// again repeats an operation that took effect: it must change nothing more.
func (w *twin) again(op model.Operation, first model.Reply) {
	w.t.Helper()
	seq := len(w.model.Journal)
	second := w.run(op)[0]
	same := false // a reservation may have gone on meanwhile, more may have been returned
	switch op.(type) {
	case model.Adjust, model.Confirm:
		same = true
	}
	if same && !reflect.DeepEqual(first, second) {
		w.t.Fatalf("%+v answers %v, and then %v", op, first, second)
	}
	if len(w.model.Journal) != seq {
		w.t.Fatalf("%+v took effect twice", op)
	}
}
