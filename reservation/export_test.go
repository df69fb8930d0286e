package reservation

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// Operation is one operation of a script call, for tests of the scripts themselves: a
// claim with the time after which it must not run, or a name and arguments.
type Operation struct {
	Claim    *Claim
	NotAfter int64
	Name     string
	Args     []any
}

// Waiting is how many wait for Redis on this store.
func (s *Store) Waiting() int { return s.calls.count() + s.rateCalls.count() }

func (c *combiner) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[0] + c.waiting[1]
}

// Combiner is one that is asked for names.
type Combiner struct{ c *combiner }

// NewCombiner makes one that sends batches of names.
func NewCombiner(send func(queue string, names []string)) Combiner {
	return Combiner{newCombiner(func(queue string, batch []*ticket) {
		names := make([]string, len(batch))
		for i, t := range batch {
			names[i] = t.op.name
		}
		send(queue, names)
		for _, t := range batch {
			t.answer(reply{t.op.name}, 0, nil)
		}
	})}
}

// Do asks for a name, as an attempt or as something that settles one.
func (c Combiner) Do(ctx context.Context, queue, name string, weight int, settles bool) (string, error) {
	r, _, err := c.c.do(ctx, queue, &ticket{op: operation{name: name}, weight: weight, settles: settles})
	return r.word(0), err
}

// Waiting is how many wait to be sent.
func (c Combiner) Waiting() int { return c.c.count() }

// Close turns everybody away and waits for what is under way.
func (c Combiner) Close() { c.c.close(); c.c.wait() }

// Together sends a claim and another operation in one batch, and returns how to wait for
// the answer to each.
func (s *Store) Together(ctx context.Context, c *Claim, op Operation) (claimed, done func() (string, error)) {
	claim := &ticket{ctx: ctx, claim: c.claiming(), done: make(chan answer, 1)}
	other := &ticket{ctx: ctx, op: operation{op.Name, op.Args}, settles: true, done: make(chan answer, 1)}
	go func() {
		batch := []*ticket{claim, other}
		safely(batch, func() { s.sendOperations(c.Sale, batch) })
	}()
	wait := func(t *ticket) func() (string, error) {
		return func() (string, error) {
			a := <-t.done
			return a.reply.word(0), a.err
		}
	}
	return wait(claim), wait(other)
}

// MostWaiting, MostTogether and MostWeight bound a combiner.
const (
	MostWaiting  = mostWaiting
	MostTogether = mostTogether
	MostWeight   = mostWeight
)

// ErrBusy: a combiner has no place.
var ErrBusy = errBusy

// Latest is how late it is at most by what a caller has heard of the shard's clock and of
// Redis's own time; both empty: it cannot tell.
type Latest struct{ Shard, Own any }

// Unbounded is later than any time: the caller knows of no step.
var Unbounded = Latest{int64(99_999_999_999_999), int64(99_999_999_999_999)}

// Measure takes another monotonic clock. It comes before anything is asked of a sale.
func (s *Store) Measure(mono func() time.Time) { s.mono = mono }

// Call runs operations, as many as there may be in one call each. It returns Redis's time
// in ms and the replies.
func (s *Store) Call(ctx context.Context, sale string, ops ...Operation) (int64, [][]any, error) {
	now, _, replies, err := s.CallSeq(ctx, sale, Unbounded, ops...)
	return now, replies, err
}

// CallSeq is Call that also returns the newest number in the journal.
func (s *Store) CallSeq(ctx context.Context, sale string, latest Latest, ops ...Operation) (now, seq int64, replies [][]any, err error) {
	for first := true; first || len(ops) > 0; first = false {
		n := 0
		var script lua.Script
		for n < len(ops) && (n == 0 || s.scriptOf(ops[n]) == script) {
			script = s.scriptOf(ops[n])
			n++
		}
		var args []any
		if script == s.scripts.Claim && n > 0 {
			claims := make([]*claiming, n)
			for i, op := range ops[:n] {
				claims[i] = op.Claim.claiming()
				claims[i].notAfter = op.NotAfter
			}
			args = reserveArgs(claims)
		} else {
			args = []any{s.channel(), sale, lua.Schema, latest.Shard, latest.Own}
			for _, op := range ops[:n] {
				args = append(append(args, op.Name, len(op.Args)), op.Args...)
			}
			if n == 0 {
				script = s.scripts.Settle
			}
		}
		raw, err := s.eval(ctx, s.redis, script, s.shardKeys(sale), args, 0)
		if err != nil {
			return 0, 0, nil, err
		}
		now, seq = raw[0].(int64), raw[2].(int64)
		for _, one := range raw[header:] {
			replies = append(replies, replyOf(one, new(textReply)))
		}
		ops = ops[n:]
	}
	return now, seq, replies, nil
}

// scriptOf is the script that has an operation.
func (s *Store) scriptOf(op Operation) lua.Script {
	switch {
	case op.Claim != nil:
		return s.scripts.Claim
	case op.Name == "adjust" || op.Name == "apply" || op.Name == "status" || op.Name == "repair" || op.Name == "align":
		return s.scripts.Manage
	}
	return s.scripts.Settle
}

// ShardKeys are the keys of one shard, in the order of lua/shard.lua.
func (s *Store) ShardKeys(sale string) []string { return s.shardKeys(sale) }

// SecretKey is the hash with which edges agree on their secret.
func (s *Store) SecretKey() string { return s.secretKey() }

// BacklogSize and BacklogOfSale bound what waits for Redis.
const (
	BacklogSize   = backlogSize
	BacklogOfSale = backlogOfSale
)

// Takes says whether a filter takes a reservation at a moment.
func (f *HoldFilter) Takes(r *Record, now time.Time) bool { return f.takes(r, now) }

// Owns says, once all are added, whether a reservation is the one to which a binding
// field belongs.
func (m *Image) Owns(id string, r *RecordFields, field string) bool {
	mine := m.claimOf(id, r, field)
	return mine.rank > RankNone && m.bound[maphash.String(m.seed, field)] == mine
}

// Wanted says, once all are added, whether a binding field must belong to anybody.
func (m *Image) Wanted(field string) bool {
	_, ok := m.bound[maphash.String(m.seed, field)]
	return ok
}

// Steady bounds a clock of Redis by the replies that have told of it.
type Steady struct{ steady }

func (s *Steady) Add(sent, arrived time.Time, ms int64) bool { return s.add(sent, arrived, ms) }
func (s *Steady) Known() bool                                { return s.known() }
func (s *Steady) Latest(moment time.Time) int64              { return s.latest(moment) }
