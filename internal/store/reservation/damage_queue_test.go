package reservation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// queued reserves a unit for an order that waits where another one is at the shop.
func queued(id string) reservation.Operation {
	op := wire(take(id, 1))
	op.Claim.Version = 1
	op.Claim.Queue = &reservation.QueueOptions{
		Pace: reservation.Pace{Orders: 1000, Per: time.Second, AtOnce: 1}, Most: 100, Memory: 1 << 20, Longest: time.Second, Edge: "A", Gate: "gate", Order: []byte("packed"),
	}
	return op
}

// turn asks for turns.
func turnOf(edge string, lease int64) reservation.Operation {
	return reservation.Operation{Name: "turn", Args: []any{edge, lease, 1000, 1000, 1, 200, "gate"}}
}

// waitingSale has orders that wait, w1 to w3, one with a turn and, where sent, one that was sent.
func (s *server) waitingSale(t *testing.T, sale string, sent bool) {
	t.Helper()
	s.fill(t, sale, []model.Operation{
		model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 20}}},
		model.SetStatus{Status: "open"},
		model.Release{ID: "tombstone", Word: "unsent", NotAfter: noon + 500}, take("in_doubt", 1), model.Doubt{ID: "in_doubt"},
	})
	call := func(ops ...reservation.Operation) {
		t.Helper()
		for _, op := range ops {
			if op.Claim != nil {
				op.Claim.Sale, op.Claim.Version = sale, 2
			}
			if _, replies, err := s.store.Call(stocktest.Soon(t), sale, op); err != nil || replies[0][0] != "ok" {
				t.Fatalf("%+v: %v, %v", op, replies, err)
			}
		}
	}
	call(queued("w0"), queued("turn"), queued("w1"), queued("w2"), queued("w3"))
	call(reservation.Operation{Name: "confirm", Args: []any{"w0", "answer", "", ""}})
	s.setTime(noon + 100)
	call(turnOf("A", 10_000))
	if sent {
		call(reservation.Operation{Name: "send", Args: []any{"turn", "A", 1, string(record.ModeResponse), 5000, 100}})
	}
}

// The keys of the line, too, are written all or not at all.
func TestDamagedLine(t *testing.T) {
	t.Parallel()
	op := func(name string, args ...any) reservation.Operation {
		return reservation.Operation{Name: name, Args: args}
	}
	type call struct {
		op   reservation.Operation
		sent bool  // the order with the turn was sent
		at   int64 // ms; 0: at once
	}
	calls := map[string]call{
		"reserve":             {op: queued("new")},
		"turn":                {op: turnOf("A", 10_000), at: noon + 200},
		"turn that is over":   {op: turnOf("B", 10_000), at: noon + 11_000},
		"send":                {op: op("send", "turn", "A", 1, "response", 5000, 100)},
		"send, told again":    {op: op("send", "w1", "A", "told", "response", 5000, 100)},
		"again":               {op: op("again", "turn", "A", 1, 5000, 100, "gate", "packed", 1000, 3), sent: true},
		"yield":               {op: op("yield", "turn", "A", 1)},
		"yield behind others": {op: op("yield", "turn", "A", 1, "", 0, 0, "", 100, 1)},
		"yield what is told":  {op: op("yield", "turn", "A", 1, "packed", 5000, 100), sent: true},
		"leave":               {op: op("leave", "w1", "why")},
		"leave with a turn":   {op: op("leave", "turn", "why")},
		"pause":               {op: op("line", "pause", 0, "")},
		"resume":              {op: op("line", "resume", 0, "")},
		"drain":               {op: op("line", "drain", 100, "why")},
		"confirm what waits":  {op: op("confirm", "w2", "answer", "", "")},
		"confirm what was":    {op: op("confirm", "turn", "answer", "", ""), sent: true},
		"release what waits":  {op: op("release", "w2", "unsent", 0, "")},
		"doubt what waits":    {op: op("doubt", "w2", "")},
		"expire what waits":   {op: op("expire", 100, 0), at: noon + 5000},
	}
	for _, s := range servers(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				t.Run(name, func(t *testing.T) {
					c, sale := calls[name], "line-"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
					s.waitingSale(t, sale, c.sent)
					if name == "resume" {
						if _, _, err := s.store.Call(stocktest.Soon(t), sale, op("line", "pause", 0, "")); err != nil {
							t.Fatal(err)
						}
					}
					if c.op.Claim != nil {
						c.op.Claim.Sale, c.op.Claim.Version = sale, 2
					}
					if c.at > 0 {
						s.setTime(c.at)
					}
					allOrNothing(t, s.client, s.store.Shard().ShardKeys(sale), func() error {
						_, _, err := s.store.Call(stocktest.Soon(t), sale, c.op)
						return err
					})
				})
			}
		})
	}
}
