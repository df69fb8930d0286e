package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// intoState brings the hold r1 of one unit, of 4 in all, into each state.
var intoState = map[string]func(*clocked){
	"held":     func(c *clocked) {},
	"in_doubt": func(c *clocked) { c.must("in_doubt")(c.Doubt(stocktest.Soon(c.t), "s", "r1", "")) },
	"confirmed": func(c *clocked) {
		c.must("confirmed")(c.Confirm(stocktest.Soon(c.t), "s", "r1", reservation.SourceAnswer, ""))
	},
	"released": func(c *clocked) {
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", "r1", reservation.SourceShop, ""))
	},
	"unbacked": func(c *clocked) {
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", "r1", reservation.SourceShop, ""))
		c.reserve("other", ofLines(sale.Line{SKU: "a", Quantity: 4}))
		c.must("unbacked")(c.Confirm(stocktest.Soon(c.t), "s", "r1", reservation.SourceAnswer, ""))
		c.must("released")(c.Release(stocktest.Soon(c.t), "s", "other", reservation.SourceShop, ""))
	},
	"expired": func(c *clocked) {
		c.step(2 * time.Minute)
		if _, err := c.Expire(stocktest.Soon(c.t), "s"); err != nil {
			c.t.Fatal(err)
		}
	},
}

// What a second reserve hears, in every state of the first one.
func TestWhatIsBound(t *testing.T) {
	live := map[string]map[string]bool{ // state → by what it is still bound
		"held":      {reservation.ByKey: true, reservation.ByRef: true, reservation.BySingle: true},
		"in_doubt":  {reservation.ByKey: true, reservation.ByRef: true, reservation.BySingle: true},
		"confirmed": {reservation.ByKey: true, reservation.ByRef: true},
		"unbacked":  {reservation.ByKey: true, reservation.ByRef: true},
		"released":  {},
		"expired":   {},
	}
	first := map[string]func(*reservation.ReserveRequest){
		reservation.ByKey: withKey("x", "print"), reservation.BySingle: withSingle("x"), reservation.ByRef: withRef("order-1"),
	}
	others := map[string]func(*reservation.ReserveRequest){ // the same key or ref for something else
		reservation.ByKey: withKey("x", "another"),
		reservation.ByRef: func(c *reservation.ReserveRequest) { c.Ref, c.RefShared, c.Buyer = "order-1", true, "Bob" },
	}
	for state, bound := range live {
		for by, edit := range first {
			t.Run(state+" by "+by, func(t *testing.T) {
				eachClock(t, 4, func(t *testing.T, c *clocked) {
					mode := inMode(record.ModeResponse)
					if state == "expired" {
						mode = inMode(record.ModeBackend)
					}
					h := c.reserve("r1", edit, mode)
					intoState[state](c)
					before := stocktest.Balanced(t, c.server.client, c.Store, "s")
					if !bound[by] {
						if b := c.bound("r2", edit); b != nil {
							t.Fatalf("bound: %v", b)
						}
						return
					}
					for name, second := range map[string]func(*reservation.ReserveRequest){"same": edit, "other": others[by]} {
						if second == nil {
							continue
						}
						b := c.bound("r2", second)
						if b == nil {
							t.Fatalf("the %s is not bound", name)
						}
						if b.By != by || b.ID != "r1" || string(b.State) != state || b.Same != (name == "same") || b.Sale != "s" ||
							!b.Created.Equal(h.Created) || !b.Deadline.Equal(h.Deadline) || !b.Exp.Equal(h.Exp) || b.Epoch != h.Epoch || b.Changed.Before(b.Created) {
							t.Errorf("the %s is bound to %+v", name, b)
						}
					}
					if err := stocktest.Balanced(t, c.server.client, c.Store, "s").Differs(before); err != nil {
						t.Errorf("a reserve that is bound has changed something: %v", err)
					}
				})
			})
		}
	}
}

// A key stays with a confirmed order for its time, and at least until the sale ends;
// a ref for ever.
func TestKeysAreFreedInTheEnd(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		ended := 367 * 24 * time.Hour
		ttl := 2 * ended
		forLong := func(cl *reservation.ReserveRequest) { cl.Binding.TTL = ttl }
		c.reserve("long", withKey("long", "p"), forLong)
		c.reserve("short", withKey("short", "p"), withRef("order-1"))
		for _, id := range []string{"long", "short"} {
			c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", id, reservation.SourceAnswer, ""))
		}
		find := func(binding, ref string) bool {
			t.Helper()
			_, replies, err := c.Call(stocktest.Soon(t), "s", reservation.Operation{Name: "lookup", Args: []any{binding, "p", ref, "Ann", "a 1", 0}})
			if err != nil {
				t.Fatal(err)
			}
			return replies[0][0] == "bound"
		}
		for _, step := range []struct {
			after            time.Duration
			long, short, ref bool
		}{
			{0, true, true, true},
			{ended / 2, true, true, true}, // its time is over, the sale is not
			{ended / 2, true, false, true},
			{ended, false, false, true},
		} {
			c.step(step.after)
			if long, short, ref := find("k|long", ""), find("k|short", ""), find("", "order-1"); long != step.long || short != step.short || ref != step.ref {
				t.Errorf("%v later: long %t, short %t, ref %t; want %+v", step.after, long, short, ref, step)
			}
		}
	})
}

// An attempt that is repeated after it was confirmed gets its own order, whatever has
// become of the sale.
func TestBoundComesFirst(t *testing.T) {
	tests := map[string]func(*clocked){
		"sold out": func(c *clocked) { c.reserve("rest", ofLines(sale.Line{SKU: "a", Quantity: 2})) },
		"paused":   func(c *clocked) { c.status(sale.Paused) },
		"closed":   func(c *clocked) { c.status(sale.Closed) },
		"ended":    func(c *clocked) { c.step(400 * 24 * time.Hour) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 3, func(t *testing.T, c *clocked) {
				c.reserve("r1", withKey("x", "p"), withRef("order-1"))
				prepare(c)
				if b := c.bound("r2", withKey("x", "p")); b == nil || b.ID != "r1" {
					t.Errorf("by key the answer is %v", b)
				}
				if b := c.bound("r2", withRef("order-1"), func(cl *reservation.ReserveRequest) { cl.Version-- }); b == nil || b.By != reservation.ByRef {
					t.Errorf("by ref the answer is %v", b)
				}
			})
		})
	}
}

func (c *clocked) status(s sale.Status) {
	c.t.Helper()
	if err := c.SetStatus(stocktest.Soon(c.t), "s", s, "test"); err != nil {
		c.t.Fatal(err)
	}
}

// Operations of one call see each other's effects.
func TestBoundWithinOneCall(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		reserve := func(id, field, ref string) reservation.Operation {
			return reservation.Operation{NotAfter: forever, Claim: &reservation.ReserveRequest{
				ID: id, Version: 2, Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Minute, Margin: 5 * time.Second,
				Mode: record.ModeBackend, Binding: reservation.Binding{Field: field, Print: "p"}, Ref: ref,
			}}
		}
		_, replies, err := c.Call(stocktest.Soon(t), "s",
			reserve("r1", "k|x", ""), reserve("r2", "k|x", ""), reserve("r3", "", "order-1"), reserve("r4", "k|y", "order-1"), reserve("r5", "d|z", ""), reserve("r6", "d|z", ""))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "r1", "", "r3", "", "r5"} {
			if code := replies[i][0]; want == "" && code != "ok" || want != "" && (code != "bound" || replies[i][2] != want) {
				t.Errorf("reserve %d answers %v, want it bound to %q", i+1, replies[i], want)
			}
		}
		settle := func(name string, args ...any) reservation.Operation {
			return reservation.Operation{Name: name, Args: args}
		}
		_, replies, err = c.Call(stocktest.Soon(t), "s",
			settle("lookup", "k|x", "p", "", "Ann", "a 1"), settle("release", "r1", "shop", 0, ""), settle("lookup", "k|x", "p", "", "Ann", "a 1"),
			settle("confirm", "r1", "operator", "", ""), settle("lookup", "k|x", "p", "", "Ann", "a 1"),
			settle("free", "r5"), settle("lookup", "d|z", "", "", "Ann", "a 1"))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"bound", "ok", "ok", "ok", "bound", "ok", "ok"} {
			if replies[i][0] != want {
				t.Errorf("operation %d answers %v, want %s", i+1, replies[i], want)
			}
		}
	})
}

// A late confirm gets its key and its ref back, also from a hold, which may yet free
// them: what is sold must be found under its name. From another that is sold it never
// takes them.
func TestBoundAgain(t *testing.T) {
	both := func(c *reservation.ReserveRequest) { withKey("x", "p")(c); c.Ref = "order-1" }
	tests := map[string]struct {
		taken func(*reservation.ReserveRequest) // by r2
		sold  bool                              // r2 is
		byKey string                            // whom a third reserve by key and one by ref is bound to
		byRef string
	}{
		"neither is bound":    {nil, false, "r1", "r1"},
		"the key is held":     {withKey("x", "p"), false, "r1", "r1"},
		"the ref is held":     {withRef("order-1"), false, "r1", "r1"},
		"both are held":       {both, false, "r1", "r1"},
		"the key is sold":     {withKey("x", "p"), true, "r2", "r1"},
		"the ref is sold":     {withRef("order-1"), true, "r1", "r2"},
		"both are sold":       {both, true, "r2", "r2"},
		"others are held":     {func(c *reservation.ReserveRequest) { withKey("y", "p")(c); c.Ref = "order-2" }, false, "r1", "r1"},
		"a single has no key": {withSingle("x"), false, "r1", "r1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 9, func(t *testing.T, c *clocked) {
				c.reserve("r1", withKey("x", "p"), withRef("order-1"))
				c.must("released")(c.Release(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""))
				if test.taken != nil {
					c.reserve("r2", test.taken)
				}
				if test.sold {
					c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r2", reservation.SourceAnswer, ""))
				}
				c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceOperator, ""))
				n := c.seq()
				if was, record := c.told("was", n-1), c.told("record", n-1); was[0] != "confirmed released" ||
					!strings.Contains(record[0], "\tk|x\tp\t") || !strings.Contains(record[0], "\torder-1\t") {
					t.Errorf("the journal has %q, %q; want what it asks for", was, record)
				}
				belong := func(when string) {
					t.Helper()
					if b := c.bound("r3", withKey("x", "p")); b == nil || b.ID != test.byKey {
						t.Errorf("%s the key belongs to %v, want %s", when, b, test.byKey)
					}
					if b := c.bound("r3", withRef("order-1")); b == nil || b.ID != test.byRef {
						t.Errorf("%s the ref belongs to %v, want %s", when, b, test.byRef)
					}
				}
				belong("at once")
				if test.taken != nil && !test.sold { // it has nothing of r1's to free
					c.must("released")(c.Release(stocktest.Soon(t), "s", "r2", reservation.SourceShop, ""))
					belong("after the hold has ended")
				}
			})
		})
	}
}

// An order that came back, wholly or in part, is not the same any more: its token would
// promise units that are on sale again. Its key still gets its answer.
func TestReturnedIsNotTheSame(t *testing.T) {
	for name, lines := range map[string][]sale.Line{"a part": {units("a", 1)}, "all": nil} {
		for _, restock := range []bool{true, false} {
			t.Run(fmt.Sprint(name, restock), func(t *testing.T) {
				eachClock(t, 9, func(t *testing.T, c *clocked) {
					two := ofLines(units("a", 2))
					c.reserve("r1", two, withKey("x", "p"), withRef("order-1"))
					c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, ""))
					if b := c.bound("r2", two, withRef("order-1")); b == nil || !b.Same {
						t.Fatalf("before the return it is bound to %+v", b)
					}
					if _, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "1", Restock: restock, Lines: lines}); err != nil {
						t.Fatal(err)
					}
					if b := c.bound("r2", two, withRef("order-1")); b == nil || b.By != reservation.ByRef || b.Same {
						t.Errorf("by its ref it is bound to %+v", b)
					}
					if b := c.bound("r2", two, withKey("x", "p")); b == nil || b.By != reservation.ByKey || !b.Same {
						t.Errorf("by its key it is bound to %+v", b)
					}
				})
			})
		}
	}
}

// A reservation that ends frees its own bindings, and none that belongs to another by now.
func TestOthersStayBound(t *testing.T) {
	tests := map[string]func(*clocked) (record.State, error){
		"released": func(c *clocked) (record.State, error) {
			return c.Release(stocktest.Soon(c.t), "s", "r1", reservation.SourceShop, "")
		},
		"confirmed": func(c *clocked) (record.State, error) {
			return c.Confirm(stocktest.Soon(c.t), "s", "r1", reservation.SourceShop, "")
		},
		"held": func(c *clocked) (record.State, error) { // it is answered twice
			_, _, err := c.Call(stocktest.Soon(c.t), "s", reservation.Operation{Name: "free", Args: []any{"r1"}})
			return record.Held, err
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 9, func(t *testing.T, c *clocked) {
				c.reserve("r1", withSingle("x"))
				free := reservation.Operation{Name: "free", Args: []any{"r1"}}
				if _, _, err := c.Call(stocktest.Soon(t), "s", free); err != nil {
					t.Fatal(err)
				}
				c.reserve("r2", withSingle("x"))
				c.must(record.State(name))(end(c))
				if b := c.bound("r3", withSingle("x")); b == nil || b.ID != "r2" {
					t.Errorf("it belongs to %v, want r2", b)
				}
			})
		})
	}
}

// A binding whose record is gone, or names another one, binds no attempt.
func TestStaleBindings(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.reserve("r1", withKey("x", "p"))
		bindings := c.Shard().ShardKeys("s")[10]
		for name, id := range map[string]string{"k|gone": "nobody", "k|y": "r1", "r|order-1": "r1"} {
			if err := c.server.client.HSet(stocktest.Soon(t), bindings, name, id).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for i, edit := range []func(*reservation.ReserveRequest){withKey("gone", "p"), withKey("y", "p"), withRef("order-1")} {
			if b := c.bound([]string{"r2", "r3", "r4"}[i], edit); b != nil {
				t.Errorf("bound: %v", b)
			}
		}
		want := map[string]string{"k|x": "r1", "k|gone": "r2", "k|y": "r3", "r|order-1": "r4", "b|Ann|order-1": "r4"}
		got := c.server.client.HGetAll(stocktest.Soon(t), bindings).Val()
		for name, id := range want {
			if got[name] != id {
				t.Errorf("%s belongs to %q, want %s", name, got[name], id)
			}
		}
	})
}

// The edge binds what an attempt brings, and says so in one word.
func TestEdgeBinds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := stocktest.Selling(t, stocktest.Options(b), 9)
		l, _ := e.Catalogue().Sale("s")
		two := []sale.Line{{SKU: "a", Quantity: 1}, {SKU: "b", Region: "north", Quantity: 1}}
		turned := []sale.Line{two[1], two[0]}
		hold := func(id string, a *sale.Attempt, lines []sale.Line) (reservation.Hold, *reservation.AlreadyBound) {
			t.Helper()
			a.Lines = lines
			keep := stocktest.HoldOptions
			keep.KeyTTL, keep.Gate = time.Hour, "main"
			h, refusal, err := e.Hold(stocktest.Soon(t), id, l, a, lines, keep)
			found, ok := errors.AsType[*reservation.AlreadyBound](err)
			if refusal != nil || err != nil && !ok {
				t.Fatalf("%s: %+v, %v", id, refusal, err)
			}
			looked, err := e.Lookup(stocktest.Soon(t), l, a, lines)
			if err != nil || (looked == nil) || found != nil && *looked != *found {
				t.Errorf("%s: lookup finds %+v, %v; the hold %+v", id, looked, err, found)
			}
			return h, found
		}
		if found, err := e.Lookup(stocktest.Soon(t), l, &sale.Attempt{Buyer: "Ann", Ref: "order-1"}, two); found != nil || err != nil {
			t.Errorf("before, lookup finds %v, %v", found, err)
		}
		if h, b := hold("r1", &sale.Attempt{Buyer: "Ann", Ref: "order-1"}, two); b != nil || h.Ref != "order-1" {
			t.Errorf("the first: %+v, %v", h, b)
		}
		for name, test := range map[string]struct {
			a     sale.Attempt
			lines []sale.Line
			by    string
			id    string
			same  bool
		}{
			"a second click":              {sale.Attempt{Buyer: "Ann"}, turned, reservation.BySingle, "r1", true},
			"the same order under a key":  {sale.Attempt{Buyer: "Ann", Key: "x", Print: "p", Ref: "order-1"}, turned, reservation.ByRef, "r1", true},
			"another's order":             {sale.Attempt{Buyer: "Bob", Ref: "order-1", RefShared: true}, two, reservation.ByRef, "r1", false},
			"the same order, other lines": {sale.Attempt{Buyer: "Ann", Ref: "order-1"}, two[:1], reservation.ByRef, "r1", false},
		} {
			_, b := hold("no", &test.a, test.lines)
			if b == nil || b.By != test.by || b.ID != test.id || b.Same != test.same {
				t.Errorf("%s: bound to %+v", name, b)
			}
		}
		if _, b := hold("r2", &sale.Attempt{Buyer: "Ann", Key: "x", Print: "p"}, two); b != nil {
			t.Errorf("under a key a buyer may buy the same again, but: %v", b)
		}
		if _, b := hold("no", &sale.Attempt{Buyer: "Ann", Key: "x", Print: "q"}, two); b == nil || b.By != reservation.ByKey || b.Same {
			t.Errorf("another payload under the key: %+v", b)
		}
		if _, b := hold("r3", &sale.Attempt{Buyer: "Bob", Key: "x", Print: "q"}, two); b != nil {
			t.Errorf("each buyer has keys of their own, but: %v", b)
		}
		e.Free(stocktest.Soon(t), "s", "r1")
		if _, b := hold("r4", &sale.Attempt{Buyer: "Ann"}, two); b != nil {
			t.Errorf("the first was answered, but: %v", b)
		}
		if n := e.Backlog(); n != 0 {
			t.Errorf("%d outcomes wait: what is bound leaves nothing to release", n)
		}
		r, err := e.Store.Reservation(stocktest.Soon(t), "r1")
		if err != nil || r.Ref != "order-1" || r.Gate != "main" {
			t.Errorf("the record is %+v, %v", r, err)
		}
	})
}

// The names tell nothing and do not collide.
func TestNamesOfBindings(t *testing.T) {
	s, other := &identity.Secret{1}, &identity.Secret{2}
	ab := []sale.Line{{SKU: "a", Quantity: 1}, {SKU: "b", Quantity: 2}}
	ba := []sale.Line{ab[1], ab[0]}
	if s.Single("Ann", ab) != s.Single("Ann", ba) {
		t.Error("the order of the lines counts")
	}
	seen := map[string]string{}
	for what, name := range map[string]string{
		"single": s.Single("Ann", ab), "buyer": s.Single("Bob", ab), "quantity": s.Single("Ann", ab[:1]), "secret": other.Single("Ann", ab),
		"lines in the buyer": s.Single("Anna 1", ab[1:]), "region": s.Single("Ann", []sale.Line{{SKU: "a", Region: "b", Quantity: 1}}),
		"key": s.Key("Ann", "x"), "shifted key": s.Key("An", "nx"), "other key": s.Key("Ann", "y"), "its secret": other.Key("Ann", "x"),
	} {
		if first, twice := seen[name]; twice {
			t.Errorf("%s and %s are both %s", first, what, name)
		}
		seen[name] = what
		if len(name) != 24 || name[:2] != "k|" && name[:2] != "d|" {
			t.Errorf("%s is named %q", what, name)
		}
	}
}

// A ref that Redis could not keep is not even sent.
func TestOddRefs(t *testing.T) {
	e := stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 3)
	long := make([]byte, 129)
	for i := range long {
		long[i] = 'x'
	}
	for _, ref := range []string{"two words", "tab\t", "é", "\x7f", string(long)} {
		c := &reservation.ReserveRequest{ID: "r1", Sale: "s", Version: 2, Lines: []sale.Line{{SKU: "a", Quantity: 1}}, Ref: ref, Mode: stocktest.HoldOptions.Mode}
		if _, refusal, err := e.Store.Reserve(stocktest.Soon(t), c); err == nil || refusal != nil || errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%q: %v, %v", ref, refusal, err)
		}
	}
	if c := stocktest.CellA(t, e.Store); c.Held != 0 {
		t.Errorf("%d units are held", c.Held)
	}
}
