package edge_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// blind keeps what is written from now on from the replica, and the journal from the edges: they
// know only what they are promised.
func (p *pair) blind() {
	p.t.Helper()
	ctx, c := stocktest.Soon(p.t), p.primary.Client()
	if err := c.Do(ctx, "ACL", "SETUSER", "default", "-xread", "-xrange").Err(); err != nil {
		p.t.Fatal(err)
	}
	c.ClientKillByFilter(ctx, "TYPE", "normal") // also those that wait for the next entry
	p.stall()
}

// What an edge was promised and has not read in the journal it tells again: holds, and how
// reservations ended.
func TestPromisesAreToldAgain(t *testing.T) {
	p := newPair(t)
	e := p.edge(p.options())
	stocktest.MustHold(t, e, "r0", "Ann", 1)
	stocktest.Replicated(t, e.Store.Shard())
	p.blind()
	p.sells(e, "w")
	for i := range 7 {
		stocktest.MustHold(t, e, fmt.Sprint("r", i+1), fmt.Sprint("buyer ", i), 2)
	}
	ctx := stocktest.Soon(t)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.ConfirmEventually(ctx, "s", "r0", ""))
	must(e.ConfirmEventually(ctx, "s", "r2", ""))
	must(e.ReleaseEventually(ctx, "s", "r3", reservation.SourceShop, ""))
	must(e.DoubtEventually(ctx, "s", "r4", "timeout"))
	must(e.Store.Extend(ctx, "s", "r5", 2*stocktest.HoldOptions.HoldFor, 3*stocktest.HoldOptions.HoldFor))
	must(e.ConfirmEventually(ctx, "s", "r6", ""))
	must(e.Store.Return(ctx, "s", "r6", reservation.Return{ID: "back", Restock: true}))
	before := stocktest.CellA(t, stocktest.OpenStore(t, stocktest.Options(p.primary)))
	p.primary.Kill()
	if got := stocktest.State(t, stocktest.OpenStore(t, stocktest.Options(p.replica)), "r1"); got != "" {
		t.Fatalf("the replica has the hold, %q: the test proves nothing", got)
	}
	p.promote()
	p.sells(e, "x")
	for id, want := range map[string]record.State{
		"r0": record.Confirmed, "r1": record.Held, "r2": record.Confirmed, "r3": record.Released, "r4": record.InDoubt, "r5": record.Held, "r6": record.Confirmed, "r7": record.Held,
	} {
		if got := stocktest.State(t, e.Store, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if r, err := e.Store.ReservationIn(ctx, "s", "r5"); err != nil || r.Deadline.Sub(r.Created) < stocktest.HoldOptions.HoldFor+time.Minute {
		t.Errorf("the extended hold ends at %v, made at %v: %v", r.Deadline, r.Created, err)
	}
	p.settled(e)
	after := stocktest.CellA(t, e.Store)
	if after.Confirmed != before.Confirmed || after.InDoubt != before.InDoubt || after.Held != before.Held+1 || after.Available != before.Available-1 {
		t.Errorf("before %+v, after the failover and one more hold %+v", before, after)
	}
	if r, err := fence.Read(ctx, e.Store.Shard(), "s"); err != nil || r.Fenced || r.Replayed != 0 || r.Missing != 0 || r.Absent != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
}

// An edge sells before it has begun to read the journal. What it sold until then is in the part
// that it looks up, or else it tells it again.
func TestAnEdgeThatSoldBeforeItRead(t *testing.T) {
	for name, trimmed := range map[string]bool{"it looks it up": false, "it only has its promises": true} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			ctx, c := stocktest.Soon(t), p.primary.Client()
			may := func(what ...any) {
				t.Helper()
				if err := c.Do(ctx, append([]any{"ACL", "SETUSER", "default"}, what...)...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			may("-xread", "-xrevrange", "-xrange")
			e := stocktest.NewEdge(t, p.options(), edge.Options{})
			e.Start()
			stocktest.Look(t, e)
			stocktest.MustHold(t, e, "r0", "Ann", 1)
			stocktest.Replicated(t, e.Store.Shard())
			p.stall()
			for i := range 300 {
				stocktest.MustHold(t, e, fmt.Sprint("r", i+1), fmt.Sprint("buyer ", i), 1)
			}
			for _, id := range []string{"r0", "r2"} {
				if _, err := e.ConfirmEventually(ctx, "s", id, ""); err != nil {
					t.Fatal(err)
				}
			}
			if trimmed {
				if err := c.XTrimMaxLen(ctx, e.Store.Shard().ShardKeys("s")[shard.JournalKey], 5).Err(); err != nil {
					t.Fatal(err)
				}
			}
			may("+xread", "+xrevrange", "+xrange")
			stocktest.Eventually(t, "an edge that follows the journal", func() bool { _, ok := e.Followed("s"); return ok })
			if _, err := e.ReleaseEventually(ctx, "s", "r3", reservation.SourceShop, ""); err != nil {
				t.Fatal(err)
			}
			stocktest.MustHold(t, e, "r301", "Bob", 1)
			stocktest.Eventually(t, "an edge that has read everything", func() bool {
				seq, ok := e.Followed("s")
				return ok && seq == e.Store.Shard().Seq("s")
			})
			p.primary.Kill()
			p.promote()
			p.sells(e, "x")
			for id, want := range map[string]record.State{
				"r0": record.Confirmed, "r1": record.Held, "r2": record.Confirmed, "r3": record.Released, "r4": record.Held, "r300": record.Held, "r301": record.Held,
			} {
				if got := stocktest.State(t, e.Store, id); got != want {
					t.Errorf("%s is %q, want %q", id, got, want)
				}
			}
			if r, err := fence.Read(ctx, e.Store.Shard(), "s"); err != nil || r.Fenced || (r.Missing > 0) != trimmed || r.Absent != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
		})
	}
}

// lateEdge starts two edges that sell and know of no journal; the second one can be kept from coming
// to the fence.
func (p *pair) lateEdge() (a, b *edge.Edge, toB *stocktest.Network) {
	p.t.Helper()
	o := p.options()
	a = p.edge(o)
	toB = &stocktest.Network{Addr: p.primary.Addr()}
	o.Dialer = toB.Dial
	b = p.edge(o)
	stocktest.MustHold(p.t, a, "r0", "Ann", 1)
	stocktest.MustHold(p.t, b, "r1", "Bob", 1)
	stocktest.Replicated(p.t, a.Store.Shard())
	p.blind()
	p.sells(b, "w")
	return a, b, toB
}

// An edge that does not come in time is not waited for. A token of what only it knew makes the
// reservation again, and when the edge comes it tells the rest.
func TestALateEdgeTellsAgain(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b, toB := p.lateEdge()
	token := stocktest.MustHold(t, b, "r2", "Cem", 1)
	stocktest.MustHold(t, b, "r3", "Dan", 1)
	if _, err := b.ConfirmEventually(stocktest.Soon(t), "s", "r1", ""); err != nil {
		t.Fatal(err)
	}
	toB.Cut()
	p.primary.Kill()
	p.promote()
	stocktest.GiveUp(t, a, b)
	p.sells(a, "x")
	ctx := stocktest.Soon(t)
	if r, err := fence.Read(ctx, a.Store.Shard(), "s"); err != nil || r.Fenced || r.Absent != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := stocktest.State(t, a.Store, "r3"); got != "" {
		t.Fatalf("r3 is %q although its edge has not come", got)
	}
	evidence := &reservation.Evidence{Sale: "s", ID: "r2", Buyer: "Cem", Epoch: token.Epoch, Created: token.Created, Exp: token.Exp, Lines: stocktest.UnitsOfA(1)}
	if state, err := a.ConfirmWith(ctx, evidence, ""); err != nil || state != record.Confirmed {
		t.Errorf("the token of a hold that was lost gives %q, %v", state, err)
	}
	later := *evidence
	later.ID, later.Created = "never", token.Created.Add(time.Hour)
	if state, err := a.ConfirmWith(ctx, &later, ""); !errors.Is(err, reservation.ErrNotFound) {
		t.Errorf("the token of a hold after the fence gives %q, %v", state, err)
	}
	toB.Lead(p.replica.Addr())
	p.sells(b, "y")
	for id, want := range map[string]record.State{"r1": record.Confirmed, "r2": record.Confirmed, "r3": record.Held} {
		stocktest.Eventually(t, fmt.Sprintf("%s that is %s", id, want), func() bool { return stocktest.State(t, a.Store, id) == want })
	}
	stocktest.Balanced(t, p.replica.Client(), a.Store, "s")
}

// Where that fails, the edge does not sell before it has told all.
func TestALateEdgeTellsUntilItIsHeard(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b, toB := p.lateEdge()
	for _, id := range []string{"r2", "r3"} {
		stocktest.MustHold(t, b, id, "buyer "+id, 1)
	}
	toB.Cut()
	p.primary.Kill()
	p.promote()
	stocktest.GiveUp(t, a, b)
	p.sells(a, "x")
	client := p.replica.Client()
	acl := func(rule string) {
		t.Helper()
		if err := client.Do(stocktest.Soon(t), "ACL", "SETUSER", "default", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
	acl("-xadd") // no call that changes anything succeeds
	toB.Lead(p.replica.Addr())
	stocktest.Eventually(t, "an edge that cannot tell", func() bool {
		return slices.ContainsFunc(b.Leases().States(), func(s fence.State) bool { return s.Owed > 0 })
	})
	acl("+xadd")
	p.sells(b, "y")
	for _, id := range []string{"r2", "r3"} {
		if got := stocktest.State(t, a.Store, id); got != record.Held {
			t.Errorf("%s is %q", id, got)
		}
	}
	stocktest.Balanced(t, client, a.Store, "s")
}

// beats are edges that say to a shard what a test wants.
type beats struct {
	t *testing.T
	p *pair
	c *shard.Client
	// seq is the newest number that the server has when it is fenced.
	seq int64
}

func newBeats(t *testing.T) *beats {
	p := newPair(t)
	return &beats{t: t, p: p, c: stocktest.OpenStore(t, p.options()).Shard()}
}

func (b *beats) say(beat *shard.Beat) shard.Reply {
	b.t.Helper()
	r, _, _, err := b.c.Beat(stocktest.Soon(b.t), "s", beat)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// fenced begins a term with two edges, and fences it.
func (b *beats) fenced() {
	b.t.Helper()
	for _, name := range []string{"a", "b"} {
		if r := b.say(&shard.Beat{Edge: name, Does: "beat", Wait: time.Hour}); r.Code() != "ok" {
			b.t.Fatalf("the first beat of %s gives %v", name, r)
		}
	}
	b.failOver()
}

// failOver promotes a replica that lacks nothing.
func (b *beats) failOver() {
	b.t.Helper()
	stocktest.Replicated(b.t, b.c)
	b.p.primary.Kill()
	b.p.promote()
	stocktest.Eventually(b.t, "a fenced shard", func() bool {
		r, _, seq, err := b.c.Beat(stocktest.Soon(b.t), "s", &shard.Beat{Edge: "a", Does: "beat", Wait: time.Hour})
		b.seq = seq
		return err == nil && r.Code() == "fenced"
	})
}

// over says that a call has ended the fence.
func over(r shard.Reply) bool { return r.Code() == "fenced" && r.Text(1) == "over" }

func (b *beats) report() fence.Report {
	b.t.Helper()
	r, err := fence.Read(stocktest.Soon(b.t), b.c, "s")
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// A fence waits for every edge: until it has come, has said what it knows, and has told again what
// it must.
func TestAFenceWaitsForEveryEdge(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	seq := b.seq
	for _, step := range []struct {
		edge, does string
		own        int
		want       string
		absent     int64
	}{
		{"a", "ready", 0, "collect", 1},
		{"b", "beat", 0, "collect", 0},
		{"b", "ready", 1, "tell", 0},
		{"a", "beat", 0, "tell", 0},
	} {
		r := b.say(&shard.Beat{Edge: step.edge, Does: step.does, Known: seq, Own: step.own, Wait: time.Hour})
		if r.Code() != "fenced" || r.Text(1) != step.want || r.Number(3) != step.absent || r.Number(4) != 0 {
			t.Fatalf("%s of %s gives %v, want %s and %d absent", step.does, step.edge, r, step.want, step.absent)
		}
	}
	if r := b.say(&shard.Beat{Edge: "b", Does: "told", Known: seq, Own: 1, Wait: time.Hour}); !over(r) {
		t.Errorf("what was told last gives %v", r)
	}
	if r := b.report(); r.Fenced || r.Missing != 0 || r.Absent != 0 {
		t.Errorf("%+v", r)
	}
}

// Promises that no edge has told again in time are lost, and count as that. Their edge counts as one
// that did not come.
func TestUntoldPromisesAreMissing(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	seq := b.seq
	b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq, Own: 3, Wait: time.Hour})
	b.say(&shard.Beat{Edge: "b", Does: "ready", Known: seq, Wait: time.Hour})
	if r := b.say(&shard.Beat{Edge: "b", Does: "beat", Known: seq}); !over(r) { // it does not wait
		t.Fatalf("an edge that does not wait gets %v", r)
	}
	if r := b.report(); r.Fenced || r.Missing != 3 || r.Absent != 1 || len(r.Edges) != 1 || r.Edges[0].ID != "a" {
		t.Errorf("%+v, want 3 that are missing, and the edge a", r)
	}
}

// An edge stops before it has said all that it knows. Where that is more than the server has, it
// counts as one that did not come, and what is lost may be made again from its token.
func TestAnEdgeThatStopsBeforeItIsReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ more, absent int64 }{
		"knows more":    {7, 1},
		"knows no more": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeats(t)
			b.fenced()
			seq := b.seq
			b.say(&shard.Beat{Edge: "b", Does: "beat", Known: seq + test.more, Wait: time.Hour})
			if r := b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq}); !over(r) || r.Number(3) != test.absent { // it does not wait
				t.Fatalf("an edge that does not wait gets %v, want the end with %d absent", r, test.absent)
			}
			r := b.report()
			if r.Fenced || r.Missing != 0 || r.Absent != test.absent || len(r.Edges) != int(test.absent) || test.absent > 0 && r.Edges[0].ID != "b" {
				t.Errorf("%+v, want %d absent", r, test.absent)
			}
			lost, err := b.p.replica.Client().HExists(stocktest.Soon(t), b.c.ShardKeys("s")[shard.MetaKey], "lost").Result()
			if err != nil || lost != (test.absent > 0) {
				t.Errorf("reservations may be lost: %v, %v", lost, err)
			}
		})
	}
}

// Numbers that no edge knows stay in the journal as missing.
func TestGapsAreFilled(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	seq := b.seq
	now := fmt.Sprint(time.Now().UnixMilli())
	tail := []any{fmt.Sprint(seq + 2), now, "adjusted\tmore\t\ta 5\t\t\t", fmt.Sprint(seq + 5), now, "adjusted\tyet more\t\ta 1\t\t\t"}
	b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq, Wait: time.Hour, Tail: tail})
	b.say(&shard.Beat{Edge: "b", Does: "ready", Known: seq, Wait: time.Hour})
	stocktest.Eventually(t, "the end of the fence", func() bool {
		return b.say(&shard.Beat{Edge: "a", Does: "beat", Known: seq, Wait: time.Hour}).Code() == "ok"
	})
	if r := b.report(); r.Replayed != 2 || r.Missing != 3 {
		t.Errorf("%+v, want 2 that were applied again and 3 that are missing", r)
	}
	if _, _, got, err := b.c.Beat(stocktest.Soon(t), "s", &shard.Beat{Edge: "a", Does: "beat", Known: seq}); err != nil || got != seq+5 {
		t.Errorf("the journal goes up to %d, want %d: %v", got, seq+5, err)
	}
	if c := stocktest.CellA(t, stocktest.OpenStore(t, b.p.options())); c.Stock != 1006 || c.Available != 1006 {
		t.Errorf("the stock is %+v, want 1006", c)
	}
}

// A call that no edge makes is refused, whatever is wrong with it, and changes nothing.
func TestAFenceRefusesWhatNoEdgeSays(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	keys := b.c.FenceKeys("s")
	now := fmt.Sprint(time.Now().UnixMilli())
	has := func() (all []map[string]string) {
		t.Helper()
		for _, key := range []string{keys[shard.MetaKey], keys[shard.EdgesKey], keys[shard.EdgesKey+1]} {
			fields, err := b.p.replica.Client().HGetAll(stocktest.Soon(t), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fields)
		}
		return all
	}
	before := has()
	for name, beat := range map[string]shard.Beat{
		"a negative number":              {Does: "ready", Known: -1},
		"a negative number of promises":  {Does: "ready", Own: -1},
		"a wait that has ended":          {Does: "ready", Wait: -time.Second},
		"an unknown word":                {Does: "sleep"},
		"no edge":                        {Does: "ready"},
		"an entry without a number":      {Does: "ready", Tail: []any{"x", now, "open\t1\t\t\t\t\t"}},
		"an entry without a time":        {Does: "ready", Tail: []any{"100", "", "open\t1\t\t\t\t\t"}},
		"an entry without its movements": {Does: "ready", Tail: []any{"100", now}},
	} {
		if beat.Edge = "a"; name == "no edge" {
			beat.Edge = ""
		}
		r, _, _, err := b.c.Beat(stocktest.Soon(t), "s", &beat)
		if err != nil || r.Code() != lua.Invalid {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if after := has(); !slices.EqualFunc(after, before, maps.Equal) {
		t.Errorf("before %q, after %q", before, after)
	}
}

// Where movements are missing, those that follow have the effect that the journal tells: it
// gets them as they can follow, or as missing too.
func TestWhatFollowsAGap(t *testing.T) {
	t.Parallel()
	b := newBeats(t)
	b.fenced()
	seq := b.seq
	at := time.Now().UnixMilli()
	rec := func(state, lines, returned string) string {
		return fmt.Sprintf("%s\t%d\t%[2]d\t%d\t%[3]d\tresponse\tAnn\t%s\t\t\t1\t\t\t0\t\t\t%s\t\t\t", state, at+60_000, at, lines, returned)
	}
	var tail []any
	give := func(movements string) {
		seq += 1 + int64(strings.Count(movements, "\n"))
		tail = append(tail, fmt.Sprint(seq), fmt.Sprint(at), movements)
	}
	give("held\tknown\t\ta 2\tAnn\t\t" + rec("held", "a 2", ""))
	seq++
	give("released\tghost\theld\ta 1\tAnn\tunsent\t")
	give("extended\tlonger\theld\t\tAnn\t\t" + rec("held", "a 1", ""))
	give("confirmed\tlate\treleased\ta 1\tAnn\t\t" + rec("confirmed", "a 1", ""))
	give("confirmed\tknown\treleased\ta 2\tAnn\t\t" + rec("confirmed", "a 2", ""))
	give("returned\tgone\tconfirmed\ta 1\tAnn\tback broken\t" + rec("confirmed", "a 2", "a 1") + "\nadjusted\tback\t\ta -1\t\tgone broken\t")
	give("unbacked\tsold\texpired\ta 1\tAnn\t\t" + rec("unbacked", "a 1", ""))
	give("held\tknown\t\ta 2\tAnn\t\t" + rec("held", "a 2", ""))
	b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq, Wait: time.Hour, Tail: tail})
	if r := b.say(&shard.Beat{Edge: "b", Does: "ready", Known: seq, Wait: time.Hour}); !over(r) && r.Number(6) == 0 {
		t.Fatalf("the fence says %v", r)
	}
	stocktest.Eventually(t, "the end of the fence", func() bool {
		return b.say(&shard.Beat{Edge: "a", Does: "beat", Known: seq, Wait: time.Hour}).Code() == "ok"
	})
	if r := b.report(); r.Replayed != 5 || r.Missing != 5 {
		t.Errorf("%+v, want 5 that were applied again and 5 that are missing", r)
	}
	is := stocktest.Balanced(t, b.p.replica.Client(), stocktest.OpenStore(t, b.p.options()), "s")
	var got []string
	for _, e := range is.Journal[b.seq:] {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.ID, e.Was)))
	}
	n := b.seq
	want := []string{
		"held known", fmt.Sprint("missing ", n+2), fmt.Sprint("missing ", n+3), "held longer", "recreated late", "confirmed known held",
		fmt.Sprint("missing ", n+7), fmt.Sprint("missing ", n+8), "unbacked sold", fmt.Sprint("missing ", n+10),
	}
	if !slices.Equal(got, want) {
		t.Errorf("the journal has\n%q, want\n%q", got, want)
	}
	if c := stocktest.CellA(t, stocktest.OpenStore(t, b.p.options())); c.Stock != 1000 || c.Held != 1 || c.Confirmed != 3 || c.Available != 996 {
		t.Errorf("the stock is %+v", c)
	}
}

// A movement that has more effects than the journal tells is not applied again: an operator decides.
func TestWhatTheJournalDoesNotTellIsStuck(t *testing.T) {
	for _, kind := range []string{"applied", "loaded", "repaired", "rebuilt"} {
		t.Run(kind, func(t *testing.T) {
			b := newBeats(t)
			b.fenced()
			seq := b.seq
			tail := []any{fmt.Sprint(seq + 1), fmt.Sprint(time.Now().UnixMilli()), kind + "\t2\t\ta 5\t\t\t"}
			b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq, Wait: time.Hour, Tail: tail})
			if r := b.say(&shard.Beat{Edge: "b", Does: "ready", Known: seq, Wait: time.Hour}); r.Code() != "fenced" || r.Text(1) != "collect" || r.Number(4) != seq+1 || r.Number(8) != 0 {
				t.Fatalf("%v, want one that is stuck at %d, and no other history", r, seq+1)
			}
			if r := b.say(&shard.Beat{Edge: "a", Does: "resume", Known: seq, Wait: time.Hour}); !over(r) {
				t.Errorf("resume gives %v", r)
			}
		})
	}
}

// An edge that knows another history than the server's cannot be right together with it: an
// operator decides. One that has not come to where they differ may be.
func TestAnotherHistoryIsStuck(t *testing.T) {
	for name, test := range map[string]struct{ known, stuck int64 }{
		"knows what differs":          {0, 1},
		"knows only what is the same": {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBeats(t)
			b.fenced()
			seq := b.seq
			term := b.c.Clock("s").Known().Term
			var n, number int64
			if _, err := fmt.Sscanf(term.Name, "%d:%d:", &n, &number); err != nil {
				t.Fatal(err)
			}
			b.c.Clock("s").Adopt(fmt.Sprintf("%d:%d:%s:%d", n, number+1, "0123456789abcdef0123456789abcdef01234567", seq), seq)
			b.say(&shard.Beat{Edge: "a", Does: "ready", Known: seq + test.known, Wait: time.Hour})
			r := b.say(&shard.Beat{Edge: "b", Does: "ready", Known: seq + test.known, Wait: time.Hour})
			if test.stuck > 0 {
				if r.Code() != "fenced" || r.Text(1) != "collect" || r.Number(4) != seq || r.Number(8) != 1 {
					t.Errorf("%v, want one that is stuck at %d by another history", r, seq)
				}
			} else if !over(r) {
				t.Errorf("%v, want the end of the fence", r)
			}
		})
	}
}

// A cart that has taken the place of another one is told again as that: the order keeps one hold, and
// what was promised of the second one holds.
func TestSwapsAreToldAgain(t *testing.T) {
	t.Parallel()
	for name, replicated := range map[string]bool{"the replica has the first one": true, "the replica has none of them": false} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			e := p.edge(p.options())
			ctx := stocktest.Soon(t)
			hold := func(id, inPlaceOf string, units int64) {
				t.Helper()
				l, _ := e.Catalogue().Sale("s")
				a := &sale.Attempt{Sale: "s", Buyer: "Ann", Lines: stocktest.UnitsOfA(units), Ref: "order-1"}
				o := stocktest.HoldOptions
				o.Mode, o.InPlaceOf = record.ModeBackend, inPlaceOf
				if _, no, err := e.Hold(ctx, id, l, a, a.Lines, o); no != nil || err != nil {
					t.Fatalf("hold %s: refused %+v, %v", id, no, err)
				}
				e.Free(ctx, "s", id)
				stocktest.Eventually(t, "the end of its request", func() bool {
					bound, err := p.primary.Client().HKeys(ctx, e.Store.Shard().ShardKeys("s")[10]).Result()
					return err == nil && !slices.ContainsFunc(bound, func(field string) bool { return strings.HasPrefix(field, "d|") })
				})
			}
			blind := func() {
				stocktest.Replicated(t, e.Store.Shard())
				p.blind()
				p.sells(e, "w")
			}
			stocktest.MustHold(t, e, "r0", "Bob", 1)
			if !replicated {
				blind()
			}
			hold("r1", "", 2)
			if replicated {
				blind()
			}
			hold("r2", "r1", 3)
			hold("r3", "r2", 4)
			if _, err := e.ConfirmEventually(ctx, "s", "r3", ""); err != nil {
				t.Fatal(err)
			}
			p.primary.Kill()
			p.promote()
			p.sells(e, "x")
			for id, want := range map[string]record.State{"r1": record.Released, "r2": record.Released, "r3": record.Confirmed} {
				if got := stocktest.State(t, e.Store, id); got != want {
					t.Errorf("%s is %q, want %q", id, got, want)
				}
			}
			if c := stocktest.CellA(t, e.Store); c.Confirmed != 4 {
				t.Errorf("%d units are sold, want 4", c.Confirmed)
			}
			stocktest.Balanced(t, p.replica.Client(), e.Store, "s")
		})
	}
}
