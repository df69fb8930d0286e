package reservation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Another buyer who knows an order's number takes nothing from its buyer, before or after
// they buy.
func TestARefOfAStranger(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 9)
		l, _ := e.Catalogue().Sale("s")
		lines := stocktest.UnitsOfA(1)
		keys := 0
		attempt := func(buyer string, shared bool) *sale.Attempt { // by its key it is a new one each time
			keys++
			return &sale.Attempt{Sale: "s", Buyer: buyer, Lines: lines, Key: fmt.Sprint(keys), Ref: "order-1", RefShared: shared}
		}
		hold := func(id, buyer string, shared bool) string {
			t.Helper()
			_, refusal, err := e.Hold(stocktest.Soon(t), id, l, attempt(buyer, shared), lines, stocktest.HoldOptions)
			if refusal != nil {
				t.Fatalf("%s: %+v", id, refusal)
			}
			return boundBy(t, err)
		}
		found := func(buyer string, shared bool) string {
			t.Helper()
			if !e.MayRepeat(l, attempt(buyer, shared)) {
				t.Errorf("%s surely has no reservation", buyer)
			}
			b, err := e.Lookup(stocktest.Soon(t), l, attempt(buyer, shared), lines)
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				return ""
			}
			return fmt.Sprintf("%s %s %s %t", b.By, b.ID, b.State, b.Same)
		}
		wants := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		wants("the stranger", hold("of-bob", "Bob", false), "")
		wants("the owner before", found("Ann", false), "")
		wants("the owner", hold("of-ann", "Ann", false), "")
		wants("the owner again", hold("no", "Ann", false), "ref of-ann true")
		wants("of a shared ref", hold("no", "Eve", true), "ref of-bob false")
		wants("the stranger again", found("Bob", false), "ref of-bob held true")
		if _, err := e.Store.Release(stocktest.Soon(t), "s", "of-bob", reservation.SourceShop, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "of-ann", reservation.SourceAnswer, ""); err != nil {
			t.Fatal(err)
		}
		wants("the owner sold", found("Ann", false), "ref of-ann confirmed true")
		wants("the stranger released", found("Bob", false), "")
		wants("of a shared ref, sold", found("Eve", true), "ref of-ann confirmed false")
		wants("of a shared ref, her own", found("Ann", true), "ref of-ann confirmed true")
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "of-bob", reservation.SourceAnswer, "late"); err != nil {
			t.Fatal(err)
		}
		wants("the stranger, late", found("Bob", false), "ref of-bob confirmed true")
		wants("the owner, still", found("Ann", false), "ref of-ann confirmed true")
	})
}

func boundBy(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	b, ok := err.(*reservation.AlreadyBound)
	if !ok {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %t", b.By, b.ID, b.Same)
}

// By a ref alone all reservations are found that have it now, up to a bound; and one of an
// older edge, which bound the ref alone.
func TestFoundByRef(t *testing.T) {
	eachClock(t, 40, func(t *testing.T, c *clocked) {
		of := func(buyer string) func(*reservation.ReserveRequest) {
			return func(cl *reservation.ReserveRequest) { cl.Buyer, cl.Ref = buyer, "order-1" }
		}
		named := func() string {
			t.Helper()
			found, err := c.Named(stocktest.Soon(t), "s", []string{"order-1", "nobody's"})
			if err != nil || found["nobody's"] != nil {
				t.Fatal(found, err)
			}
			f := found["order-1"]
			if f == nil {
				return ""
			}
			var ids []string
			for _, r := range f.Records {
				ids = append(ids, r.ID)
			}
			slices.Sort(ids)
			return strings.TrimSpace(fmt.Sprint(strings.Join(ids, " "), map[bool]string{true: " and more"}[f.More]))
		}
		wants := func(want string) {
			t.Helper()
			if got := named(); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		}
		wants("")
		c.reserve("r1", of("Ann"))
		wants("r1")
		key := c.Shard().ShardKeys("s")[10]
		if n := c.server.client.HDel(stocktest.Soon(t), key, record.RefField("Ann", "order-1")).Val(); n != 1 {
			t.Fatal("the ref is not bound to its buyer")
		}
		if b := c.bound("no", of("Ann")); b == nil || b.ID != "r1" {
			t.Errorf("what an older edge has bound: %+v", b)
		}
		c.reserve("r2", of("Bob"))
		wants("r1 r2")
		c.must("released")(c.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""))
		wants("r2")
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, "late"))
		wants("r1 r2")
		for i := 3; i <= 20; i++ {
			c.reserve(fmt.Sprintf("r%d", i), of(fmt.Sprint("buyer ", i)))
		}
		wants("r1 r10 r11 r12 r13 r14 r15 r16 r2 r3 r4 r5 r6 r7 r8 r9 and more")
		if b := c.bound("no", of("buyer 20")); b == nil || b.ID != "r20" {
			t.Errorf("one that is not found by its ref alone: %+v", b)
		}
		if others := c.server.client.HGet(stocktest.Soon(t), key, "m|order-1").Val(); len(strings.Fields(others)) != 16 {
			t.Errorf("others: %q", others)
		}
		for _, id := range []string{"r2", "r20"} {
			c.must("released")(c.Release(stocktest.Soon(t), "s", id, reservation.SourceShop, ""))
		}
		wants("r1 r10 r11 r12 r13 r14 r15 r16 r3 r4 r5 r6 r7 r8 r9 and more")
	})
}

// What is found by a ref follows from the reservations.
func TestImageOfRefs(t *testing.T) {
	m := recovery.NewImage(time.UnixMilli(100), time.UnixMilli(500))
	for i := range 20 {
		r := &record.Record{State: record.Held, Changed: time.UnixMilli(int64(i)), Buyer: fmt.Sprint("b", i), Ref: "order-1"}
		if i == 1 {
			r.State = record.Released
		}
		binds := strings.Join(m.Add(fmt.Sprint("r", i), r), " ")
		want := fmt.Sprintf("b|b%d|order-1", i)
		switch i {
		case 0:
			want += " r|order-1"
		case 1:
			want = ""
		}
		if binds != want {
			t.Errorf("%d binds %q, want %q", i, binds, want)
		}
	}
	n := 0
	for field, ids := range m.Others {
		n++
		if field != "m|order-1" || ids != "r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 r16 +" {
			t.Errorf("%s: %s", field, ids)
		}
	}
	if n != 1 {
		t.Errorf("%d fields", n)
	}
}

// A swap between the two readings of a ref hides no hold: not the one that has taken the place.
func TestFoundWhileSwapped(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		of := func(cl *reservation.ReserveRequest) { cl.Ref, cl.Mode = "order-1", record.ModeBackend }
		c.reserve("r1", of)
		swapped := meanwhile{after: "hmget"}
		swapped.do = func() {
			if _, refusal, err := c.Swap(stocktest.Soon(t), c.claimOf("r2", of), "r1", "", false); refusal != nil || err != nil {
				t.Error(refusal, err)
			}
		}
		shard.Redis(c.Shard()).AddHook(&swapped)
		found, err := c.ByRef(stocktest.Soon(t), "s", "order-1")
		if swapped.after != "" {
			t.Fatal("nothing happened meanwhile: the test proves nothing")
		}
		if err != nil || len(found.Records) != 1 || found.Records[0].ID != "r2" || found.Records[0].State != record.Held {
			t.Errorf("found %+v, want the held r2: %v", found, err)
		}
	})
}
