package reservation_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A confirm changes three fields of a hold's record, and its movement tells the rest, whatever
// the record has and whichever edge has written it.
func TestConfirmKeepsTheRecord(t *testing.T) {
	type edits = []func(*reservation.ReserveRequest)
	field := func(i int, value string) func(string) string { // as another operation leaves the record
		return func(text string) string {
			f := strings.Split(text, "\t")
			f[i] = value
			return strings.Join(f, "\t")
		}
	}
	tests := map[string]struct {
		with   edits
		change func(text string) string
	}{
		"nothing special": {},
		"a key, a ref":    {with: edits{withKey("k", "print"), withRef("order-1"), ofGate("main")}},
		"no key":          {with: edits{withSingle("ann")}},
		"several lines":   {with: edits{ofLines(units("a", 2), north(1)), withKey("several", "")}},
		"until told":      {with: edits{inMode(record.ModeBackend)}},
		"charges": {with: edits{func(r *reservation.ReserveRequest) {
			r.Charges = []reservation.Charge{charge("x", 2), charge("y", 1)}
		}}},
		"a cause":         {change: field(9, "put off for a minute")},
		"probes":          {change: field(17, "2 5 1 0")},
		"an older record": {change: func(text string) string { return strings.TrimSuffix(text, "\t") }},
	}
	eachClock(t, 99, func(t *testing.T, c *clocked) {
		ctx := stocktest.Soon(t)
		records := c.Shard().ShardKeys("s")[3]
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				id := strings.ReplaceAll(name, " ", "-")
				c.reserve(id, test.with...)
				text := c.server.client.HGet(ctx, records, id).Val()
				if test.change != nil {
					text = test.change(text)
					if err := c.server.client.HSet(ctx, records, id, text).Err(); err != nil {
						t.Fatal(err)
					}
				}
				want, err := record.Parse(text)
				if err != nil || want.State != record.Held {
					t.Fatalf("the record is %q: %v", text, err)
				}
				c.step(time.Second)
				before := c.seq()
				c.must("confirmed")(c.Confirm(ctx, "s", id, reservation.SourceAnswer, "paid\tin full"))
				want.State, want.Changed, want.Cause = record.Confirmed, c.now.UTC(), "paid in full"
				if got := c.server.client.HGet(ctx, records, id).Val(); got != want.Text() {
					t.Errorf("the record is\n%q, want\n%q", got, want.Text())
				}
				movements, err := c.Journal().Movements(ctx, "s", int64(before), 2)
				if err != nil || len(movements) != 1 {
					t.Fatalf("the movements are %+v: %v", movements, err)
				}
				m := movements[0]
				if m.Kind != "confirmed" || m.ID != id || m.Was != record.Held || !reflect.DeepEqual(m.Lines, want.Lines) || m.Buyer != want.Buyer ||
					m.Cause != want.Cause || m.Record != nil {
					t.Errorf("the movement is %+v", m)
				}
				if c.server.client.ZScore(ctx, c.Shard().ShardKeys("s")[4], id).Err() == nil {
					t.Error("it still has a deadline")
				}
				if want.Guard != "" {
					kept := c.server.client.HExists(ctx, c.Shard().ShardKeys("s")[10], want.Guard).Val()
					if kept != strings.HasPrefix(want.Guard, "k|") {
						t.Errorf("%s is bound: %t", want.Guard, kept)
					}
				}
			})
		}
	})
}

// What other operations of the same call have made of a hold is what a confirm finds: the servers
// agree with the model.
func TestConfirmsTogether(t *testing.T) {
	w := newTwin(t, servers(t), "s")
	w.do(model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 9}}}, model.SetStatus{Status: "open"})
	single := take("single", 1)
	single.Guard = "d|Ann"
	w.do(take("r", 1), take("later", 1), take("released", 1), take("twice", 1), single)
	w.setTime(noon + 5)
	confirm := func(id string) model.Operation { return model.Confirm{ID: id, Word: "shop", Cause: "paid"} }
	got := w.run(
		confirm("r"), model.Doubt{ID: "r", Cause: "late"},
		model.Extend{ID: "later", HoldFor: day, Longest: day}, confirm("later"),
		model.Release{ID: "released", Word: "shop", NotAfter: noon, Cause: "402"}, confirm("released"),
		confirm("twice"), confirm("twice"), confirm("single"), confirm("unknown"))
	for i, want := range []string{"ok", "ok", "ok", "ok", "ok", "conflict", "ok", "ok", "ok", "not_found"} {
		if got[i][0] != want {
			t.Errorf("the %d. answer is %v, want %s", i+1, got[i], want)
		}
	}
}

func charge(field string, amount int64) reservation.Charge {
	return reservation.Charge{Limit: &sale.Limit{Max: 100}, Field: "buyer:sale:units|-|" + field, Amount: amount, To: sale.EndOfTime}
}
