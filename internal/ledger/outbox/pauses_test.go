package outbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Options that are not given have their defaults: a receiver that is not well is left alone
// for half of the first pause at least.
func TestDefaultPauses(t *testing.T) {
	for status, least := range map[int]time.Duration{500: 250 * time.Millisecond, 400: 2500 * time.Millisecond} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s, r := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t)
			r.before = func(n int, _ http.ResponseWriter, _ *http.Request) int {
				if n == 1 {
					return status
				}
				return 0
			}
			s.Sell(100)
			run(t, s.Store.Journal(), nil, outbox.Options{URL: r.url, Secrets: options(t, r).Secrets}, newCounts())
			untilSent(t, s, r)
			all := r.seen()
			if waited := all[1].at.Sub(all[0].at); waited < least {
				t.Errorf("it is asked again after %v", waited)
			}
			if n := len(all[0].Data.Movements); n != outbox.DefaultBatch {
				t.Errorf("a batch has %d movements", n)
			}
		})
	}
}

// A receiver that asks to be left alone is: by the edge that it has told so, and by the
// others, for longer than the others would wait for an edge that is dead.
func TestReceiverIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, r := ledgertest.NewSeller(t, server, 1000), newReceiver(t)
	s.Sell(3)
	r.before = func(n int, w http.ResponseWriter, _ *http.Request) int {
		if n == 1 {
			w.Header().Set("Retry-After", "7")
			return 503
		}
		return 0
	}
	journals := &timed{Journal: s.Store.Journal()}
	run(t, journals, nil, options(t, r), newCounts())
	ledgertest.Eventually(t, "it is asked", func() bool { return r.came() > 0 })
	run(t, openStore(t, server).Journal(), nil, options(t, r), newCounts())
	untilSent(t, s, r)
	all := r.seen()
	if waited := all[1].at.Sub(all[0].at); waited < 7*time.Second && !journals.stalled() { // as a machine that does too much may
		t.Errorf("it is asked again after %v", waited)
	}
}
