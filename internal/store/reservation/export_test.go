package reservation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Operation is one operation of a script call, for tests of the scripts themselves: a
// reserve request with the time after which it must not run, or a name and arguments.
type Operation struct {
	Claim    *ReserveRequest
	Told     bool // the claim is told again
	NotAfter int64
	Name     string
	Args     []any
}

// SwapArgs are the arguments of a swap; told: it is told again.
func (c *ReserveRequest) SwapArgs(hold, identities string, notAfter int64, told bool) []any {
	e := c.encode()
	if told {
		e = e.told(false)
	}
	return ofHold{hold, identities != "", ofOffer(identities)}.operation(e, notAfter).Args
}

// AcceptArgs are the arguments of an accept; told: it is told again.
func (c *ReserveRequest) AcceptArgs(identities string, notAfter int64, told bool) []any {
	e := c.encode()
	if told {
		e = e.told(c.Queue != nil)
	}
	return ofOffer(identities).operation(e, notAfter).Args
}

// OfferArgs are the arguments of an offer; told: it is told again.
func (c *ReserveRequest) OfferArgs(entry, notAfter int64, told bool) []any {
	e := c.encode()
	if told {
		e = e.told(false)
	}
	return toEntry(entry).operation(e, notAfter).Args
}

// Profile is what a request has in common with others; told: it is told again, as one that waits or went.
func (c *ReserveRequest) Profile(told, waits bool) string {
	e := c.encode()
	if told {
		e = e.told(waits)
	}
	return e.profile
}

// Waiting is how many wait for Redis on this store.
func (s *Store) Waiting() int { return s.Calls.Waiting() }

// InOneCall runs functions, each of which asks once for stock of a sale, and sends what they ask in one call, in their order. They queue
// behind a request whose turn does not end before.
func (s *Store) InOneCall(of string, asks ...func(context.Context)) {
	taken, send := make(chan struct{}), make(chan struct{})
	first := (&ReserveRequest{Recall: func() *sale.Refusal {
		close(taken)
		<-send
		return sale.Refuse(sale.SoldOut)
	}}).encode()
	s.Calls.Ask(context.Background(), of, &Call{Request: request{claim: first}})
	<-taken
	var all sync.WaitGroup
	for _, ask := range asks {
		next := make(chan struct{})
		queued := sync.OnceFunc(func() { close(next) })
		all.Go(func() {
			defer queued() // or answered without Redis
			ask(&awaited{context.Background(), queued})
		})
		<-next
	}
	close(send)
	all.Wait()
}

// awaited is a context that tells when a caller waits for its end: what the caller asks for is in the queue then.
type awaited struct {
	context.Context
	tell func()
}

func (a *awaited) Done() <-chan struct{} {
	a.tell()
	return a.Context.Done()
}

// Together sends a reserve request and another operation in one batch, and returns how to wait for
// the answer to each.
func (s *Store) Together(ctx context.Context, c *ReserveRequest, op Operation) (claimed, done func() (string, error)) {
	claim := &Call{Ctx: ctx, Request: request{claim: c.encode()}, Done: make(chan combine.SourceAnswer[result], 1)}
	other := &Call{Ctx: ctx, Request: request{Op: shard.Op(op.of(), op.Args...)}, Settles: true, Done: make(chan combine.SourceAnswer[result], 1)}
	go func() {
		batch := []*Call{claim, other}
		combine.Safely(batch, func() { s.sendOperations(c.Sale, batch) })
	}()
	wait := func(t *Call) func() (string, error) {
		return func() (string, error) {
			a := <-t.Done
			return a.What.Reply.Text(0), a.Err
		}
	}
	return wait(claim), wait(other)
}

// Latest is how late it is at most by what a caller has heard of the shard's clock and of
// Redis's own time; both empty: it cannot tell.
type Latest struct{ Shard, Own any }

// Unbounded is later than any time: the caller knows of no step.
var Unbounded = Latest{int64(99_999_999_999_999), int64(99_999_999_999_999)}

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
		for n < len(ops) && ops[n].of().Script == ops[0].of().Script {
			n++
		}
		script := s.shard.Options.Scripts.OfNone()
		if n > 0 {
			script = s.shard.Options.Scripts.Of(ops[0].of())
		}
		var args []any
		if n > 0 && ops[0].Claim != nil {
			claims := make([]*encodedRequest, n)
			for i, op := range ops[:n] {
				claims[i] = op.Claim.encode()
				if op.Told {
					claims[i] = claims[i].told(false)
				}
				claims[i].notAfter = op.NotAfter
			}
			args = reserveArgs("", 0, claims)
		} else {
			args = []any{s.shard.Channel(), sale, lua.Schema, latest.Shard, latest.Own, "", 0}
			for _, op := range ops[:n] {
				args = append(append(args, op.Name, len(op.Args)), op.Args...)
			}
		}
		raw, err := shard.Redis(s.shard).EvalSha(ctx, script.SHA, s.shard.ShardKeys(sale), args...).Slice()
		if shard.NotLoaded(err) {
			raw, err = shard.Redis(s.shard).Eval(ctx, script.Source, s.shard.ShardKeys(sale), args...).Slice()
		}
		if err != nil {
			return 0, 0, nil, shard.Explain(err)
		}
		now, seq = raw[0].(int64), raw[2].(int64)
		for _, one := range raw[shard.Header:] {
			replies = append(replies, shard.ReplyOf(one, new(shard.TextReply)))
		}
		ops = ops[n:]
	}
	return now, seq, replies, nil
}

// of is the entry of the table of operations.
func (op Operation) of() *lua.Operation {
	if op.Claim != nil {
		return lua.Reserve
	}
	all := lua.Operations()
	return all[slices.IndexFunc(all, func(o *lua.Operation) bool { return o.Name == op.Name })]
}

// ShardKeys are the keys of one shard, in the order of lua/shard.lua.
func (s *Store) ShardKeys(sale string) []string { return s.shard.ShardKeys(sale) }

// SecretKey is the hash with which edges agree on their secret.
func (s *Store) SecretKey() string { return s.shard.SecretKey() }

// Takes reports whether a filter takes a reservation at a moment.
func (f *HoldFilter) Takes(r *Record, now time.Time) bool { return f.takes(r, now) }

// MaxAnswers bounds the bytes of the answers of a sale.
const MaxAnswers = maxAnswers
