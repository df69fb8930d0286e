package ledgertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Run tests a driver. fresh makes an empty database and returns a function that opens
// it, each time as another process would.
func Run(t *testing.T, fresh func(t *testing.T) (open func() ledger.Ledger)) {
	for name, test := range map[string]func(*testing.T, func() ledger.Ledger){
		"migrate": migrates, "claim": claims, "append": appends, "missing": missing, "history": histories, "apart": apart, "race": races,
		"restart": restarts, "anew": anew, "traced": traced, "changed": changedByOthers, "document": documents, "cancel": cancels,
		"rebuild":          rebuilds(func(t testing.TB) redistest.Backend { return redistest.Start(t) }, 600),
		"rebuild embedded": rebuilds(func(t testing.TB) redistest.Backend { return redistest.Embedded(t) }, 40),
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// ready opens a database and creates its tables.
func ready(t *testing.T, open func() ledger.Ledger) ledger.Ledger {
	t.Helper()
	l := open()
	if err := l.Migrate(Soon(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

func migrates(t *testing.T, open func() ledger.Ledger) {
	var all sync.WaitGroup
	for range 6 {
		l := open()
		all.Go(func() {
			for range 2 {
				if err := l.Migrate(Soon(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	l := open()
	if at, err := l.Position(Soon(t), "s"); at != (ledger.Position{}) || err != nil {
		t.Errorf("an empty ledger is at %+v, error %v", at, err)
	}
	if ids, err := l.Sales(Soon(t)); len(ids) != 0 || err != nil {
		t.Errorf("an empty ledger has %v, error %v", ids, err)
	}
}

func claims(t *testing.T, open func() ledger.Ledger) {
	a, b := ready(t, open), open()
	try := func(l ledger.Ledger, owner string, forHow time.Duration, want bool) {
		t.Helper()
		if _, ours, err := l.Acquire(Soon(t), "s", owner, forHow); ours != want || err != nil {
			t.Fatalf("lease for %s: %v, error %v; want %v", owner, ours, err, want)
		}
	}
	try(a, "A", lease, true)
	try(a, "A", lease, true)
	try(b, "B", lease, false)
	if err := b.Giveup(Soon(t), "s", "B"); err != nil {
		t.Fatal(err)
	}
	try(b, "B", lease, false)
	if err := a.Giveup(Soon(t), "s", "A"); err != nil {
		t.Fatal(err)
	}
	try(b, "B", 30*time.Minute, true)
	try(a, "A", lease, false)
	try(b, "B", time.Millisecond, true) // and B dies
	ctx := Soon(t)
	for ours := false; !ours; {
		var err error
		if _, ours, err = a.Acquire(ctx, "s", "A", lease); err != nil {
			t.Fatal(err)
		}
	}
	try(b, "B", lease, false)
	// of an owner whose clock was years ahead and has been corrected
	try(a, "A", 10000*time.Hour, true)
	try(b, "B", lease, true)
}

// missing stores the numbers that stand for what a failover has lost.
func missing(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	all := []journal.Movement{
		{Seq: 1, Kind: "loaded", ID: "file", Lines: []record.CellUnits{{Cell: "a", Units: 5}}}, {Seq: 2, Kind: "missing", ID: "2"},
		{Seq: 3, Kind: "missing", ID: "3"}, {Seq: 4, Kind: "adjusted", ID: "more", Lines: []record.CellUnits{{Cell: "a", Units: 2}}},
	}
	if err := l.Append(Soon(t), "s", "A", &ledger.Batch{Epoch: 1, Movements: all}); err != nil {
		t.Fatal(err)
	}
	if at, err := l.Position(Soon(t), "s"); err != nil || at != (ledger.Position{Epoch: 1, Seq: 4}) {
		t.Errorf("it is at %+v, error %v", at, err)
	}
	if have := Read(t, l, "s", 1); len(have) != 4 || have[2].Kind != "missing" || have[2].ID != "3" {
		t.Errorf("it has %+v", have)
	}
}

func appends(t *testing.T, open func() ledger.Ledger) {
	a, b := ready(t, open), open()
	s := History(t, 1, 60)
	all := Movements(t, s.Journal)
	batch := func(from, to int) *ledger.Batch { return &ledger.Batch{Epoch: s.Epoch, Movements: all[from:to]} }
	if err := a.Append(Soon(t), "s", "A", batch(0, 5)); !errors.Is(err, ledger.ErrNotOwner) {
		t.Fatalf("without a lease: %v", err)
	}
	claim(t, a, "s", "A")
	no := refuses[*ledger.PositionError](t, a, "s", "A", batch(3, 9))
	if !strings.Contains(no.Error(), "begins after entry 3") {
		t.Errorf("from the middle: %v", no)
	}
	if err := a.Append(Soon(t), "s", "A", batch(0, 5)); err != nil {
		t.Fatal(err)
	}
	refuses[*ledger.PositionError](t, a, "s", "A", batch(0, 5)) // the answer was lost, and A repeats the call
	refuses[*ledger.PositionError](t, a, "s", "A", batch(4, 9))
	refuses[*ledger.PositionError](t, a, "s", "A", batch(6, 9))
	gap := append(append([]journal.Movement{}, all[5:8]...), all[9:12]...)
	if no := refuses[*journal.GapError](t, a, "s", "A", &ledger.Batch{Epoch: s.Epoch, Movements: gap}); no.Want != 9 || no.Have != 10 {
		t.Errorf("a gap is %v", no)
	}
	if err := a.Append(Soon(t), "s", "A", &ledger.Batch{Epoch: s.Epoch}); err == nil {
		t.Error("an empty batch is taken")
	}
	// it takes longer than its lease, and another owner takes over
	if err := b.Append(Soon(t), "s", "B", batch(5, 9)); !errors.Is(err, ledger.ErrNotOwner) {
		t.Fatalf("with a foreign lease: %v", err)
	}
	if err := a.Giveup(Soon(t), "s", "A"); err != nil {
		t.Fatal(err)
	}
	if at := claim(t, b, "s", "B"); at != (ledger.Position{Epoch: s.Epoch, Seq: 5}) {
		t.Fatalf("the other one begins at %+v", at)
	}
	if err := a.Append(Soon(t), "s", "A", batch(5, 9)); !errors.Is(err, ledger.ErrNotOwner) {
		t.Fatalf("after its lease: %v", err)
	}
	lost := batch(5, 9)
	lost.Epoch++
	if no := refuses[*ledger.PositionError](t, b, "s", "B", lost).Error(); !strings.Contains(no, "redis has lost sale s") || !strings.Contains(no, "rebuild s --from ledger") {
		t.Errorf("another epoch: %s", no)
	}
	odd := batch(5, 9)
	odd.Movements = append([]journal.Movement{}, odd.Movements...)
	odd.Movements[2].Kind = "teleported"
	if err := b.Append(Soon(t), "s", "B", odd); err == nil || !strings.Contains(err.Error(), "movement 8 (teleported") {
		t.Errorf("an unknown kind: %v", err)
	}
	appendAll(t, b, "s", "B", s.Epoch, all[5:], func() int { return 7 })
	Agrees(t, a, "s", s)
}

// Random histories in batches of all sizes give the same projections as the model.
func histories(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	s := History(t, 7, 3000)
	dice := rand.New(rand.NewPCG(3, 0))
	appendAll(t, l, "s", "A", s.Epoch, Movements(t, s.Journal), func() int { return 1 + dice.IntN(1+dice.IntN(500)) })
	Agrees(t, l, "s", s)
}

// Operations on one sale do not affect another.
func apart(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	shards := map[string]*model.Shard{"s": History(t, 11, 80), "t.u-v_w": History(t, 12, 90)}
	for id, s := range shards {
		claim(t, l, id, "owner of "+id)
		appendAll(t, l, id, "owner of "+id, s.Epoch, Movements(t, s.Journal), func() int { return 50 })
	}
	for id, s := range shards {
		Agrees(t, l, id, s)
	}
	ids, err := l.Sales(Soon(t))
	if err != nil || len(ids) != 2 || ids[0] != "s" || ids[1] != "t.u-v_w" {
		t.Errorf("the sales are %q, error %v", ids, err)
	}
}

// Owners that take the sale from each other all the time, and do not wait for an answer, leave
// each movement once.
func races(t *testing.T, open func() ledger.Ledger) {
	ready(t, open)
	s := History(t, 5, 400)
	all := Movements(t, s.Journal)
	var owners sync.WaitGroup
	for _, owner := range []string{"A", "B", "C"} {
		l := open()
		owners.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(owner[0]), 0))
			for ctx := Soon(t); ctx.Err() == nil; {
				at, ours, err := l.Acquire(ctx, "s", owner, time.Microsecond)
				if err != nil {
					t.Errorf("%s: %v", owner, err)
					return
				}
				if at.Seq == int64(len(all)) {
					return
				}
				if !ours {
					continue
				}
				end := min(int(at.Seq)+1+dice.IntN(30), len(all))
				err = l.Append(ctx, "s", owner, &ledger.Batch{Epoch: s.Epoch, Movements: all[at.Seq:end]})
				if _, moved := errors.AsType[*ledger.PositionError](err); err != nil && !moved && !errors.Is(err, ledger.ErrNotOwner) {
					t.Errorf("%s: %v", owner, err)
					return
				}
			}
		})
	}
	owners.Wait()
	Agrees(t, open(), "s", s)
}

func restarts(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	s := History(t, 21, 50)
	all := Movements(t, s.Journal)
	appendAll(t, l, "s", "A", s.Epoch, all, func() int { return 100 })
	from, to := ledger.Position{Epoch: s.Epoch, Seq: int64(len(all))}, ledger.Position{Epoch: s.Epoch + 9, Seq: 3}
	if err := l.Restart(Soon(t), "s", ledger.Position{Epoch: s.Epoch, Seq: 1}, to); err == nil {
		t.Error("the ledger has moved on, and yet it is restarted")
	}
	if err := l.Restart(Soon(t), "s", from, to); err != nil {
		t.Fatal(err)
	}
	next := journal.Movement{Seq: 4, Kind: "adjusted", Time: time.UnixMilli(noon).UTC(), ID: "j", Lines: []record.CellUnits{{Cell: "a", Units: 3}}}
	b := &ledger.Batch{Epoch: to.Epoch, Movements: []journal.Movement{next}}
	if err := l.Append(Soon(t), "s", "A", b); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("the owner from before the restart goes on: %v", err)
	}
	if at := claim(t, l, "s", "B"); at != to {
		t.Errorf("it goes on at %+v, want %+v", at, to)
	}
	before, _ := s.Cell("a")
	if err := l.Append(Soon(t), "s", "B", b); err != nil {
		t.Fatal(err)
	}
	stock, err := l.Stock(Soon(t), "s")
	if err != nil || stock[1].Name != "a" || stock[1].Available != before.Available+3 {
		t.Errorf("the stock is %+v, error %v; it was %+v", stock, err, before)
	}
	Same(t, Read(t, l, "s", s.Epoch), all)
	Same(t, Read(t, l, "s", to.Epoch), []journal.Movement{next})
}

// A reservation that differs between ledger and journal is an error, and never ignored.
func changedByOthers(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	moved := journal.Movement{Seq: 1, Kind: "confirmed", Was: record.Held, Time: time.UnixMilli(noon), ID: "r1"}
	if err := l.Append(Soon(t), "s", "A", &ledger.Batch{Epoch: 1, Movements: []journal.Movement{moved}}); !errors.Is(err, ledger.ErrChanged) {
		t.Errorf("a reservation that was never made is confirmed: %v", err)
	}
}

func documents(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	if d, err := l.Document(Soon(t), "s"); d != (ledger.Document{}) || err != nil {
		t.Errorf("none: %+v, error %v", d, err)
	}
	for seq, want := range []ledger.Document{
		{Version: 1, Status: "draft", File: `{"id":"s"}`}, {Version: 2, Status: "open", File: `{"id":"s","是":"\u0000"}`},
	} {
		m := journal.Movement{Seq: int64(seq + 1), Kind: "applied", Time: time.UnixMilli(noon), ID: "1"}
		if err := l.Append(Soon(t), "s", "A", &ledger.Batch{Epoch: 1, Movements: []journal.Movement{m}, Document: &want}); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Document(Soon(t), "s"); d != want || err != nil {
			t.Errorf("%+v, error %v; want %+v", d, err, want)
		}
	}
}

// A call whose time is up ends, and leaves nothing behind.
func cancels(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	claim(t, l, "s", "A")
	s := History(t, 31, 500)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Append(over, "s", "A", &ledger.Batch{Epoch: s.Epoch, Movements: Movements(t, s.Journal)}); err == nil {
		t.Error("the call succeeds after its time")
	}
	stop := errors.New("enough")
	appendAll(t, l, "s", "A", s.Epoch, Movements(t, s.Journal), func() int { return 1000 })
	if err := l.Movements(Soon(t), "s", s.Epoch, 0, 10, func(*journal.Movement) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("what yield says is lost: %v", err)
	}
	if err := l.Reservations(Soon(t), "s", func(*ledger.Reservation) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("what yield says is lost: %v", err)
	}
	Agrees(t, l, "s", s)
}
