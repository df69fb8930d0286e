package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// A receiver that fails before and after it has processed, several edges, and a crowd
// of sellers: it has each movement, in order, and knows by their numbers those that it
// had.
func TestEverythingIsSent(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s, r, c := ledgertest.NewSeller(t, b, 10_000), newReceiver(t), newCounts()
		r.before = func(n int, w http.ResponseWriter, _ *http.Request) int {
			switch n % 9 {
			case 1:
				return 500
			case 3:
				panic(http.ErrAbortHandler) // it dies before
			}
			return 0
		}
		r.after = func(n int, w http.ResponseWriter, _ *http.Request) int {
			switch n % 9 {
			case 5:
				panic(http.ErrAbortHandler) // and after
			case 7:
				return 503
			}
			return 0
		}
		for range 3 {
			run(t, s.Store.Journal(), nil, options(t, r), c)
		}
		var sellers sync.WaitGroup
		for range 4 {
			sellers.Go(func() { s.Sell(50) })
		}
		sellers.Wait()
		h := untilSent(t, s, r)
		if r.again == 0 || c.answered("5xx") == 0 || c.answered("none") == 0 {
			t.Errorf("%d movements came again, %v: the test has not tested it", r.again, c.answers)
		}
		ledgertest.Eventually(t, "no lag is reported", func() bool { return c.lag("s") == 0 })
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sent < int(h.Last) || c.failed["receiver"] == 0 {
			t.Errorf("%d were sent, failures %v", c.sent, c.failed)
		}
	})
}

// dying are the journals of an edge that dies around its calls: before them, or after
// them and before their answers. It holds its claims for a moment only, so that no outbox
// waits for the dead.
type dying struct {
	*journal.Journal
	calls atomic.Int64
	die   func()
}

func (d *dying) lives(ran bool) error {
	if n := d.calls.Add(1); n%11 == 5 && ran || n%11 == 9 && !ran {
		d.die()
		return context.Canceled
	}
	return nil
}

func (d *dying) AcquireLease(ctx context.Context, sale, owner string, _ time.Duration, epoch, last int64) (journal.SendLease, bool, error) {
	if err := d.lives(false); err != nil {
		return journal.SendLease{}, false, err
	}
	at, ours, err := d.Journal.AcquireLease(ctx, sale, owner, 20*time.Millisecond, epoch, last)
	if dead := d.lives(true); dead != nil {
		return journal.SendLease{}, false, dead
	}
	return at, ours, err
}

func (d *dying) Sent(ctx context.Context, sale string, epoch, seq int64) error {
	if err := d.lives(false); err != nil {
		return err
	}
	err := d.Journal.Sent(ctx, sale, epoch, seq)
	if dead := d.lives(true); dead != nil {
		return dead
	}
	return err
}

// GiveUpOutbox is what the dead do not do.
func (d *dying) GiveUpLease(context.Context, string, string) error { return nil }

// Edges that send die around their calls, and others go on: nothing is missing, and
// the same batch has the same id and the same bytes, whichever outbox sends it.
func TestSendersDie(t *testing.T) {
	server := redistest.Start(t)
	s, r, c := ledgertest.NewSeller(t, server, 10_000), newReceiver(t), newCounts()
	stop, over := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		over.Go(func() {
			for {
				died := make(chan struct{})
				end := run(t, &dying{Journal: s.Store.Journal(), die: sync.OnceFunc(func() { close(died) })}, nil, options(t, r), c)
				select {
				case <-died:
					end()
					continue
				case <-stop:
					end()
					return
				}
			}
		})
	}
	bodies := map[string]string{}
	for again := 0; again == 0 && !t.Failed(); { // until one has died between an answer and its note
		s.Sell(200)
		untilSent(t, s, r)
		clear(bodies)
		for _, one := range r.seen() {
			if had, ok := bodies[one.id]; ok {
				if again++; had != one.body {
					t.Errorf("%s was\n%s\nand is\n%s", one.id, had, one.body)
				}
			}
			bodies[one.id] = one.body
		}
	}
	close(stop)
	over.Wait()
	if n := r.again; n > 0 && len(bodies) == len(r.seen()) {
		t.Errorf("%d movements came again under another id", n)
	}
}

// timed are the journals of an edge that knows for how long at most it had not renewed
// its claim.
type timed struct {
	*journal.Journal
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
}

func (j *timed) AcquireLease(ctx context.Context, sale, owner string, forHow time.Duration, epoch, last int64) (journal.SendLease, bool, error) {
	asked := time.Now()
	at, ours, err := j.Journal.AcquireLease(ctx, sale, owner, forHow, epoch, last)
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.last.IsZero() {
		j.longest = max(j.longest, time.Since(j.last))
	}
	j.last = asked
	return at, ours, err
}

func (j *timed) stalled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.longest >= outbox.Lease
}

// An edge that waits for the receiver keeps the others away, for longer than it
// could if it were dead; and when it has ended, another one sends the same at once.
func TestOneSendsAtATime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, r := ledgertest.NewSeller(t, server, 1000), newReceiver(t)
	s.Sell(3)
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	var waiting, most atomic.Int32
	r.before = func(n int, w http.ResponseWriter, req *http.Request) int {
		most.Store(max(most.Load(), waiting.Add(1)))
		defer waiting.Add(-1)
		arrived <- struct{}{}
		select {
		case <-release:
		case <-req.Context().Done():
			panic(http.ErrAbortHandler)
		}
		return 0
	}
	first, second := newCounts(), newCounts()
	journals := &timed{Journal: s.Store.Journal()}
	end := run(t, journals, nil, options(t, r), first)
	<-arrived
	run(t, openStore(t, server).Journal(), nil, options(t, r), second)
	began := time.Now()
	ledgertest.Eventually(t, "it waits for longer than a lease", func() bool { return time.Since(began) > outbox.Lease+2*time.Second })
	if n := r.came(); (n != 1 || most.Load() != 1) && !journals.stalled() { // as a machine that does too much may
		t.Errorf("%d requests came, %d at once", n, most.Load())
	}
	if second.lag("s") == 0 {
		t.Error("the one that does not send does not say how far the receiver is behind")
	}
	end()
	<-arrived
	if all := r.seen(); all[0].id != all[1].id || all[0].body != all[1].body {
		t.Errorf("the other sends %s, not %s", all[1].id, all[0].id)
	}
	close(release)
	untilSent(t, s, r)
}

// A receiver that refuses gets the same again and again, until it takes it: nothing is
// skipped, redirects are not followed, and it is said once, and once that it is over.
func TestRefusalsAreSentAgain(t *testing.T) {
	for _, status := range []int{301, 307, 400, 401, 404, 408, 410, 413, 425, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
			s.Sell(4)
			r.before = func(n int, w http.ResponseWriter, req *http.Request) int {
				if req.URL.Path != "/movements" {
					t.Errorf("%s was asked for", req.URL.Path)
				}
				if n > 5 {
					return 0
				}
				w.Header().Set("Location", "/elsewhere")
				return status
			}
			run(t, s.Store.Journal(), nil, options(t, r), c)
			untilSent(t, s, r)
			for i, one := range r.seen()[:6] {
				if first := r.seen()[0]; one.id != first.id || one.body != first.body {
					t.Errorf("request %d is %s, the first was %s", i+1, one.id, first.id)
				}
			}
			ledgertest.Eventually(t, "it is said that it goes on", func() bool { n, _ := c.Logged("the outbox sends the sale again"); return n == 1 })
			if told := c.troubles(); told != "map[]" {
				t.Errorf("the trouble goes on: %s", told)
			}
			n, text := c.Logged("the outbox does not get on with the sale")
			if n != 1 || !strings.Contains(text, fmt.Sprint("the receiver answers ", status)) || strings.Contains(text, "s3cret") {
				t.Errorf("it is said %d times, last %q", n, text)
			}
		})
	}
}

// A batch that one edge has begun to send, and that its receiver may have, is sent by the
// next edge with the same numbers, although that one would have put more into it.
func TestBegunBatchIsSentFirst(t *testing.T) {
	for name, c := range map[string]struct {
		sold, batch, later int
	}{
		"there is more":      {1, 7, 9},
		"batches are larger": {9, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, before := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
			s.Sell(c.sold)
			var well atomic.Bool
			r.after = func(int, http.ResponseWriter, *http.Request) int {
				if !well.Load() {
					return 500 // when it has it
				}
				return 0
			}
			o := options(t, r)
			o.Batch = c.batch
			end := run(t, s.Store.Journal(), nil, o, before)
			ledgertest.Eventually(t, "it has been sent", func() bool { return before.answered("5xx") > 0 })
			end()
			first, begun := r.seen()[0], r.came()
			s.Sell(c.later)
			well.Store(true)
			run(t, s.Store.Journal(), nil, options(t, r), newCounts())
			untilSent(t, s, r)
			next := r.seen()[begun:]
			if next[0].id != first.id || next[0].body != first.body {
				t.Errorf("%s was begun, and then came %s", first.id, next[0].id)
			}
			for len(next) > 1 && next[0].id == first.id { // also a request of the one before that came late
				next = next[1:]
			}
			if all := int64(next[0].Data.First); all != first.Data.Last+1 {
				t.Errorf("the batch behind it begins at %d, it ends at %d", all, first.Data.Last)
			}
		})
	}
}

// A message that is too large for the receiver can be made smaller by the
// configuration, although it is on its way.
func TestTooLarge(t *testing.T) {
	s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
	s.Sell(10)
	r.before = func(n int, _ http.ResponseWriter, _ *http.Request) int {
		if len(r.seen()[n-1].Data.Movements) > 3 {
			return 413
		}
		return 0
	}
	end := run(t, s.Store.Journal(), nil, options(t, r), c)
	ledgertest.Eventually(t, "it is too large", func() bool { return c.answered("4xx") > 1 })
	end()
	small := options(t, r)
	small.Batch = 3
	run(t, s.Store.Journal(), nil, small, c)
	untilSent(t, s, r)
}

// A receiver that is not there, or takes too long, is asked again, and its URL is not
// logged.
func TestReceiverIsAway(t *testing.T) {
	s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
	s.Sell(4)
	r.before = func(n int, w http.ResponseWriter, req *http.Request) int {
		if n == 1 {
			<-req.Context().Done()
			panic(http.ErrAbortHandler)
		}
		return 0
	}
	o := options(t, r)
	gone := o
	gone.URL = "http://127.0.0.1:1/movements?key=s3cret"
	end := run(t, s.Store.Journal(), nil, gone, c)
	ledgertest.Eventually(t, "no answer", func() bool { return c.answered("none") > 2 })
	ledgertest.Eventually(t, "the trouble is told", func() bool { return strings.Contains(c.troubles(), "does not answer") })
	end()
	o.Timeout = 100 * time.Millisecond
	slow := newCounts()
	end = run(t, s.Store.Journal(), nil, o, slow)
	ledgertest.Eventually(t, "it takes too long", func() bool { return slow.answered("none") > 0 })
	end()
	run(t, s.Store.Journal(), nil, options(t, r), newCounts())
	untilSent(t, s, r)
	for _, c := range []*counts{c, slow} { // one that is slow may be heard between two times that it is not
		if n, text := c.Logged("the outbox does not get on with the sale"); n < 1 || n > 1 && c != slow || !strings.Contains(text, "does not answer") || strings.Contains(text, "s3cret") {
			t.Errorf("it is said %d times, last %q", n, text)
		}
	}
}

// A sale that Redis has lost goes on with its new epoch from its start; Redis that
// comes back with its data goes on where it was.
func TestRedisLosesAndKeeps(t *testing.T) {
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	s, r, c := ledgertest.NewSeller(t, server, 1000), newReceiver(t), newCounts()
	run(t, s.Store.Journal(), nil, options(t, r), c)
	s.Sell(10)
	before := untilSent(t, s, r)
	server.Kill()
	ledgertest.Eventually(t, "redis is away", func() bool { n, _ := c.Logged("the outbox does not get on with the sale"); return n > 0 })
	server.Restart()
	ledgertest.Eventually(t, "redis is back", func() bool { return s.Refresh(ledgertest.Soon(t)) == nil })
	s.Sell(10)
	if h := untilSent(t, s, r); h.Epoch != before.Epoch || r.again != 0 {
		t.Errorf("the epoch is %d and was %d, %d movements came again", h.Epoch, before.Epoch, r.again)
	}
	if err := server.Client().FlushAll(ledgertest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	s.Load(500)
	s.Sell(10)
	if h := untilSent(t, s, r); h.Epoch == before.Epoch || len(r.lost) > 0 {
		t.Errorf("the epoch is %d and was %d; lost %v", h.Epoch, before.Epoch, r.lost)
	}
}

// When a life of the sale ends before the receiver has all of it, that is said, with
// what it has.
func TestEpochEndsUnsent(t *testing.T) {
	server := redistest.Start(t)
	s, r, c := ledgertest.NewSeller(t, server, 1000), newReceiver(t), newCounts()
	var away atomic.Bool
	r.before = func(int, http.ResponseWriter, *http.Request) int {
		if away.Load() {
			return 500
		}
		return 0
	}
	run(t, s.Store.Journal(), nil, options(t, r), c)
	s.Sell(5)
	untilSent(t, s, r)
	away.Store(true)
	s.Sell(5)
	ledgertest.Eventually(t, "it is refused", func() bool { return c.answered("5xx") > 0 })
	// its name stays, so that no look at the sales finds none
	if err := server.Client().Del(ledgertest.Soon(t), s.Store.Shard().ShardKeys("s")...).Err(); err != nil {
		t.Fatal(err)
	}
	s.Load(500)
	away.Store(false)
	untilSent(t, s, r)
	if n, _ := c.Logged("before the outbox had sent all"); n != 1 {
		t.Errorf("it is said %d times that the epoch has ended, want 1", n)
	}
}

// A sale that is restored from a backup sells in a new epoch, so that a receiver that skips the numbers it has gets what is
// sold from then on; the messages say which movements it may have of the epoch before.
func TestRestoredFromABackup(t *testing.T) {
	server := redistest.Start(t)
	s, r, c := ledgertest.NewSeller(t, server, 1000), newReceiver(t), newCounts()
	run(t, s.Store.Journal(), nil, options(t, r), c)
	s.Sell(5)
	untilSent(t, s, r)
	before, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.MarkRestored(ledgertest.Soon(t), "s", time.Now(), "me"); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "me"); err != nil {
		t.Fatal(err)
	}
	s.Sell(5)
	ledgertest.Eventually(t, "all is sent", func() bool {
		h, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
		return err == nil && h.Unsent() == 0
	})
	after, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Store.Journal().Movements(ledgertest.Soon(t), "s", before.Last, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Same(t, r.movements(after.Epoch), want)
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.requests[len(r.requests)-1].Data; last.Continues == nil || *last.Continues != (journal.Continued{Epoch: before.Epoch, Last: before.Last}) {
		t.Errorf("the receiver hears %+v", last)
	}
}

// What was trimmed before the outbox was switched on comes from the ledger; where there
// is none, the receiver and the log hear which numbers are lost.
func TestTrimmedBefore(t *testing.T) {
	for _, withLedger := range []bool{true, false} {
		t.Run(fmt.Sprint(withLedger), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			epoch, last := ledgertest.Fill(t, server.Client(), "s", 5_100) // more than are always kept
			store, r, c := openStore(t, server), newReceiver(t), newCounts()
			var old ledger.Ledger
			if withLedger {
				l, err := sqlite.Open(filepath.Join(t.TempDir(), "ledger.db"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				ctx, cancel := context.WithCancel(t.Context())
				var drained sync.WaitGroup
				drained.Go(func() { ledger.NewDrainer(store.Journal(), store, l, c.Log(), c).Run(ctx) })
				ledgertest.Eventually(t, "the ledger has everything", func() bool {
					at, err := l.Position(ledgertest.Soon(t), "s")
					return err == nil && at.Seq == last
				})
				cancel()
				drained.Wait()
				old = l
			}
			h, err := store.Journal().Head(ledgertest.Soon(t), "s")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Journal().Trim(ledgertest.Soon(t), "s", h, 200, false, 0); err != nil {
				t.Fatal(err)
			}
			o := options(t, r)
			o.Batch = 1000
			run(t, store.Journal(), old, o, c)
			ledgertest.Eventually(t, "the receiver has everything", func() bool { return r.has(epoch) == last })
			n, _ := c.Logged("movements were trimmed before the outbox could send them")
			have := r.movements(epoch)
			if withLedger {
				if int64(len(have)) != last || len(r.lost) > 0 || n > 0 {
					t.Errorf("%d of %d came, lost %v, said %d times", len(have), last, r.lost, n)
				}
				return
			}
			if !slices.Equal(r.lost, []outbox.Numbers{{From: 1, To: 200}}) || n != 1 || int64(len(have)) != last-200 || have[0].Seq != 201 {
				t.Errorf("%d of %d came, lost %v, said %d times", len(have), last, r.lost, n)
			}
		})
	}
}

// Only the kinds and the sales that are wanted are sent, and the place moves on all
// the same.
func TestChosen(t *testing.T) {
	s, r, other := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newReceiver(t)
	o, not := options(t, r), options(t, other)
	r.some = true
	o.Kinds, not.Sales = []string{"confirmed", "released"}, []string{"another"}
	run(t, s.Store.Journal(), nil, not, newCounts())
	run(t, s.Store.Journal(), nil, o, newCounts())
	s.Sell(50)
	var h journal.Head
	ledgertest.Eventually(t, "all of it is looked at", func() bool {
		var err error
		h, err = s.Store.Journal().Head(ledgertest.Soon(t), "s")
		return err == nil && h.Unsent() == 0
	})
	all, err := s.Store.Journal().Movements(ledgertest.Soon(t), "s", 0, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(all, func(m journal.Movement) bool { return m.Kind != "confirmed" && m.Kind != "released" })
	ledgertest.Same(t, r.movements(h.Epoch), want)
	if n := other.came(); n > 0 {
		t.Errorf("%d requests about a sale that is not configured", n)
	}
}

// forgetful are the journals of an edge that a few times cannot say what was sent.
type forgetful struct {
	*journal.Journal
	times atomic.Int32
}

func (f *forgetful) Sent(ctx context.Context, sale string, epoch, seq int64) error {
	if f.times.Add(-1) >= 0 {
		return shard.ErrUnavailable
	}
	return f.Journal.Sent(ctx, sale, epoch, seq)
}

// What the receiver has taken is not posted again because Redis could not be told.
func TestTakenIsNotPostedAgain(t *testing.T) {
	s, r, c := ledgertest.NewSeller(t, redistest.Start(t), 1000), newReceiver(t), newCounts()
	s.Sell(10)
	journals := &forgetful{Journal: s.Store.Journal()}
	journals.times.Store(3)
	run(t, journals, nil, options(t, r), c)
	untilSent(t, s, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.again != 0 || c.failed["journal"] < 3 || c.sent != len(r.order) {
		t.Errorf("%d movements came again, %d of %d were counted, failures %v", r.again, c.sent, len(r.order), c.failed)
	}
}
