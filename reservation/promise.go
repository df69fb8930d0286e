package reservation

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/shard"
)

// Promise is what Redis has told a caller of this process: that stock is held, or how a
// reservation has ended.
type Promise struct{ request request }

// Promises keeps what Redis has promised until this process has read it in the journal. Its
// method must be fast.
type Promises interface {
	// Promised is called before the caller has the answer. The movement has the number seq in
	// the sale's journal, or an earlier one.
	Promised(sale string, seq int64, p Promise)
}

// Keep has a Promises told of every promise from now on.
func (s *Store) Keep(p Promises) { s.promises.Store(&p) }

// isPromise reports whether a client, the shop or an operator relies on an answer.
func isPromise(t *Call, r shard.Reply) bool {
	if r.Code() != lua.OK {
		return false
	}
	switch t.Request.Op.Name {
	case "", "confirm", "release", "doubt", "extend", "return":
		return true
	}
	return false
}

// Tell asks a shard again for what it has promised and may have lost. The same request twice
// has no effect. ctx must have the pass of the shard's fence, or there must be none. It returns
// the promises that cannot be kept now: other buyers have the units, or a limit is full.
func (s *Store) Tell(ctx context.Context, sale string, promises []Promise) (failed []Promise, err error) {
	for _, p := range promises {
		kept, err := s.tell(ctx, sale, p)
		if err != nil {
			return nil, err
		}
		if !kept {
			failed = append(failed, p)
		}
	}
	return failed, nil
}

func (s *Store) tell(ctx context.Context, sale string, p Promise) (bool, error) {
	var replies []shard.Reply
	var err error
	if c := p.request.claim; c != nil {
		again := *c
		now, ok := s.shard.Clock(sale).Now()
		if !ok {
			return false, fmt.Errorf("%w: its time is not known", shard.ErrUnavailable)
		}
		again.notAfter = now + s.shard.Options.Timeout.Milliseconds() + shard.Tolerance
		replies, _, err = s.reserveAt(ctx, sale, []*encodedRequest{&again})
	} else {
		replies, _, err = s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, s.shard.Scripts.Settle, sale, p.request.Op)
	}
	if err != nil {
		return false, err
	}
	return replies[0].Code() == lua.OK, nil
}

// IDs are the ids of the reservations of some promises, at most so many.
func IDs(promises []Promise, most int) []string {
	ids := make([]string, 0, min(len(promises), most))
	for _, p := range promises[:cap(ids)] {
		if c := p.request.claim; c != nil {
			ids = append(ids, c.id)
		} else {
			id, _ := p.request.Op.Args[0].(string)
			ids = append(ids, id)
		}
	}
	return ids
}
