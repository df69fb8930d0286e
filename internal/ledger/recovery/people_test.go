package recovery_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// waiting is a sale whose units are held, on whose list people are.
type waiting struct {
	*testing.T
	*ledgertest.Seller
	server *redistest.Server
	ledger ledger.Ledger
	desk   *waitlist.Desk
}

// newWaiting has four people on the list: ann has an offer, bob and dan wait, and cid has left.
func newWaiting(t *testing.T) *waiting {
	t.Helper()
	server, s, l := ledgertest.Drained(t, 3, 0)
	w := &waiting{t, s, server, l, waitlist.NewDesk(s.Store)}
	t.Cleanup(w.desk.Close)
	for _, id := range []string{"r1", "r2", "r3"} {
		w.hold(id)
	}
	for i, name := range []string{"ann", "bob", "cid", "dan"} {
		if e := w.enter(name); e.Number != int64(i+1) || !e.New {
			t.Fatalf("%s has %+v", name, e)
		}
	}
	w.release("r1")
	w.offer(1, "ann")
	w.leave(3, "cid")
	return w
}

func (w *waiting) hold(id string) {
	w.Helper()
	if _, no, err := ledgertest.Attempt(w.T, w.Seller, id, ""); no != nil || err != nil {
		w.Fatal(id, no, err)
	}
}

func (w *waiting) release(id string) {
	w.Helper()
	if _, err := w.Store.Release(ledgertest.Soon(w.T), "s", id, reservation.SourceShop, ""); err != nil {
		w.Fatal(err)
	}
}

func (w *waiting) enter(name string) waitlist.Entered {
	w.Helper()
	e, no, err := w.desk.Enter(ledgertest.Soon(w.T), &waitlist.Entrant{
		Sale: "s", Cell: "a", Quantity: 1, Buyer: name, Identities: " phone=of-" + name, Most: sale.DefaultWaiting,
	})
	if no != nil || err != nil {
		w.Fatalf("%s: %+v, %v", name, no, err)
	}
	return e
}

func (w *waiting) leave(number int64, name string) {
	w.Helper()
	if ok, err := w.desk.Leave(ledgertest.Soon(w.T), "s", number, name, "left"); !ok || err != nil {
		w.Fatalf("%s: %t, %v", name, ok, err)
	}
}

func (w *waiting) offer(number int64, name string) {
	w.Helper()
	l, _ := w.Catalogue().Sale("s")
	made, err := w.Store.Offer(ledgertest.Soon(w.T), "s", []int64{number}, []*reservation.ReserveRequest{{
		Sale: "s", Version: l.Version, Buyer: name, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: 30 * time.Minute,
	}})
	if err != nil || made[0].Refusal != nil || made[0].Gone || made[0].Hold.State != record.Held {
		w.Fatalf("%s: %+v, %v", name, made, err)
	}
}

// accept orders what was offered.
func (w *waiting) accept(id, name string) {
	w.Helper()
	l, _ := w.Catalogue().Sale("s")
	h, no, err := w.Store.Accept(ledgertest.Soon(w.T), &reservation.ReserveRequest{
		Sale: "s", ID: id, Version: l.Version, Buyer: name, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Minute, Mode: record.ModeBackend,
	}, " phone=of-"+name)
	if no != nil || err != nil || h.State != record.Held {
		w.Fatalf("%s: %+v, %+v, %v", name, h, no, err)
	}
}

// drain copies the journal to the ledger.
func (w *waiting) drain() {
	w.Helper()
	end := w.Drain(w.ledger, ledgertest.NewCounts())
	w.UntilDrained(w.ledger)
	end()
}

// list is who is on the list in Redis: the names with a star behind those that have an offer.
func (w *waiting) list() (names string) {
	w.Helper()
	all, _, err := waitlist.ReadAll(ledgertest.Soon(w.T), w.Store.Shard().Data("s"))
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range all {
		names += e.Buyer
		if e.Offered {
			names += "*"
		}
		if hash := e.Identity("phone"); hash != "" && hash != "of-"+e.Buyer {
			w.Errorf("%s has the phone %s", e.Buyer, hash)
		}
		names += " "
	}
	return names
}

// people fails unless these are on the list, and each finds the own entry.
func (w *waiting) people(want string, names ...string) {
	w.Helper()
	if got := w.list(); got != want {
		w.Errorf("on the list are %q, want %q", got, want)
	}
	for _, name := range names {
		if e := w.enter(name); e.New {
			w.Errorf("%s has got another entry: %+v", name, e)
		}
	}
}

// Redis has lost all. People are on the list as they were, and an offer is accepted.
func TestRebuildBringsPeopleBack(t *testing.T) {
	w := newWaiting(t)
	w.drain()
	before := ledgertest.Raw(t, w.server.Client())
	for range 2 { // what the rebuild wrote is in the ledger too
		ledgertest.Flush(t, w.server)
		out := ledgertest.Rebuild(t, w.ledger, w.Seller, recovery.RebuildOptions{Open: true})
		ledgertest.SameRaw(t, ledgertest.Raw(t, w.server.Client()), before)
		if out.Waiting != 3 {
			t.Errorf("it says that %d wait", out.Waiting)
		}
		w.drain()
	}
	w.people("ann* bob dan ", "ann", "bob", "dan")
	if e := w.enter("eve"); e.Number != 5 {
		t.Errorf("the next one has %+v", e)
	}
	w.accept("order", "ann")
	w.people("bob dan eve ")
}

// The ledger lacks some movements, which are merged: who has entered since, who has left, what was offered and accepted.
func TestRebuildMergesPeople(t *testing.T) {
	w := newWaiting(t)
	w.drain()
	w.accept("order", "ann")
	w.release("r2")
	w.offer(2, "bob")
	w.leave(4, "dan")
	w.enter("eve")
	out := ledgertest.Rebuild(t, w.ledger, w.Seller, recovery.RebuildOptions{Open: true, Force: true})
	if out.Merged == nil {
		t.Fatal("nothing was merged")
	}
	w.people("bob* eve ", "bob", "eve")
	w.accept("order2", "bob")
	w.people("eve ")
}

// A reconciliation finds nothing wrong with people who wait, offers and accepted ones.
func TestReconcilePeople(t *testing.T) {
	w := newWaiting(t)
	w.release("r2")
	w.offer(2, "bob")
	w.accept("order", "bob")
	w.drain()
	found, err := recovery.Reconcile(ledgertest.Soon(t), w.Store, w.ledger, "s", recovery.Options{})
	if err != nil || len(found.Differences) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
