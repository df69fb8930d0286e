package ledgertest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// lease is longer than any test.
const lease = time.Hour / 2

// Soon is a context that ends a call which would otherwise wait forever.
func Soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Read reads all movements of an epoch, a few at a time.
func Read(t testing.TB, l ledger.Ledger, sale string, epoch int64) (all []journal.Movement) {
	t.Helper()
	for {
		n := 0
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Seq
		}
		err := l.Movements(Soon(t), sale, epoch, after, 700, func(m *journal.Movement) error {
			all = append(all, *m)
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
	}
}

// Same fails unless the movements of a ledger are those of a journal, each once and
// in order. Texts are compared in the form that databases store.
func Same(t testing.TB, have, want []journal.Movement) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("the ledger has %d movements, want %d", len(have), len(want))
	}
	for i := range want {
		w := want[i]
		w.Cause = ledger.Text(w.Cause)
		if w.Record != nil {
			r := *w.Record
			r.Cause = ledger.Text(r.Cause)
			w.Record = &r
		}
		if !reflect.DeepEqual(have[i], w) {
			t.Fatalf("movement %d is\n%+v, want\n%+v", i+1, have[i], w)
		}
	}
}

// claim calls Acquire, which must succeed.
func claim(t testing.TB, l ledger.Ledger, sale, owner string) ledger.Position {
	t.Helper()
	at, ours, err := l.Acquire(Soon(t), sale, owner, lease)
	if err != nil || !ours {
		t.Fatalf("lease of %s for %s: %v, error %v", sale, owner, ours, err)
	}
	return at
}

// appendAll appends movements in batches.
func appendAll(t testing.TB, l ledger.Ledger, sale, owner string, epoch int64, all []journal.Movement, sizes func() int) {
	t.Helper()
	for len(all) > 0 {
		n := min(sizes(), len(all))
		if err := l.Append(Soon(t), sale, owner, &ledger.Batch{Epoch: epoch, Movements: all[:n]}); err != nil {
			t.Fatalf("append %d movements after %d: %v", n, all[0].Seq-1, err)
		}
		all = all[n:]
	}
}

// refuses fails unless an append is refused with an error of this kind, and nothing
// has changed.
func refuses[E error](t testing.TB, l ledger.Ledger, sale, owner string, b *ledger.Batch) E {
	t.Helper()
	before, err := l.Position(Soon(t), sale)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Append(Soon(t), sale, owner, b)
	want, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("the append gives %v, want %T", err, want)
	}
	if after, err := l.Position(Soon(t), sale); after != before || err != nil {
		t.Fatalf("it was refused and the position is %+v (%v), it was %+v", after, err, before)
	}
	return want
}

func contextWithCancel() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}

// Eventually checks a condition until it is true. It never waits for a fixed time, and
// fails after a very long one.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx := Soon(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
