package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/model"
)

// noon is when histories begin, in ms: yesterday's, so that their sale has not ended and nothing of
// them is too old to be kept.
var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour).UnixMilli()

// causes are texts that a shop may send.
var causes = []string{"", "status_500", "two words", "a\ttab\nand a line", "\x00\x1f\x7f", "是'\";--", "\xff\xfe", "%s$1?"}

// cells are those of a history; the last has the longest name.
var cells = []string{"a", "b/1@n", "b/1@s", fmt.Sprintf("%0128d@%0128d", 7, 8)}

// History does this many random operations on a sale. The same seed gives the same history.
func History(t testing.TB, seed uint64, operations int) *model.Shard {
	t.Helper()
	t.Logf("history of %d operations, seed %d", operations, seed)
	s := model.New()
	s.Time = noon
	h := history{s, rand.New(rand.NewPCG(seed, 0)), 0}
	model.Apply{Doc: "first", Starts: noon - 1, Ends: noon + 1e9, Deltas: h.deltas(model.MaxUnits / 2)}.Run(s)
	model.SetStatus{Status: "open"}.Run(s)
	for range operations {
		s.Time += h.IntN64(30)
		h.step()
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

type history struct {
	*model.Shard
	*rand.Rand
	made int
}

func (h history) IntN64(n int) int64 { return int64(h.IntN(n)) }

func (h *history) deltas(units int64) []model.Delta {
	out := make([]model.Delta, len(cells))
	for i, c := range cells {
		out[i] = model.Delta{Cell: c, Units: units}
	}
	return out
}

func (h *history) cause() string { return causes[h.IntN(len(causes))] }

// known is one of the latest reservations.
func (h *history) known() string { return fmt.Sprintf("r%d", max(0, h.made-h.IntN(12))) }

func (h *history) step() {
	var op model.Operation
	switch h.IntN(22) {
	default:
		h.made++
		o := model.Reserve{
			ID: fmt.Sprintf("r%d", h.made), Version: h.Version, NotAfter: h.Time + 500, HoldFor: 1 + h.IntN64(400), Margin: 1,
			Mode: []string{"response", "backend"}[h.IntN(2)], Buyer: "buyer", Guard: fmt.Sprintf("k|%d", h.made), Print: "p", KeyTTL: 1000, Gate: "main",
			Ref: fmt.Sprintf("order-%d", h.made),
		}
		for _, c := range h.Perm(len(cells))[:1+h.IntN(3)] {
			o.Lines = append(o.Lines, model.Line{Cell: cells[c], Units: 1 + h.IntN64(3)})
		}
		o.Limits = []model.Limit{{Charge: model.Charge{Field: "buyer:sale:orders|-|x", Amount: 1}, Max: 1e9, To: noon + 1e10}}
		op = o
	case 8, 9, 10, 11:
		op = model.Confirm{ID: h.known(), Word: []string{"answer", "shop", "operator", "probe"}[h.IntN(4)], Cause: h.cause()}
	case 12, 13:
		op = model.Release{ID: h.known(), Word: []string{"shop", "unsent", "unheard", "force"}[h.IntN(4)], Cause: h.cause()}
	case 14:
		op = model.Doubt{ID: h.known(), Cause: h.cause()}
	case 15:
		op = model.Expire{Most: 20}
	case 16:
		op = model.Extend{ID: h.known(), HoldFor: 1000, Longest: 5000}
	case 17:
		op = model.Return{ID: h.known(), Return: fmt.Sprint(h.IntN(3)), Restock: h.IntN(2) == 0, Cause: h.cause()}
	case 20:
		op = h.sold()
	case 21:
		op = h.swap()
	case 18:
		op = model.Adjust{ID: fmt.Sprint("j", h.made), Cell: cells[h.IntN(len(cells))], Delta: h.IntN64(9) - 4, Cause: h.cause()}
	case 19:
		switch h.IntN(3) {
		case 0:
			op = model.Apply{Version: h.Version, Doc: "next", Starts: h.Starts, Ends: h.Ends, Cause: h.cause(), Deltas: h.deltas(h.IntN64(5))}
		case 1:
			op = model.SetStatus{Status: []string{"open", "paused"}[h.IntN(2)]}
		default: // recreated from an old token
			h.made++
			op = model.Confirm{ID: fmt.Sprintf("r%d", h.made), Word: "shop", Cause: h.cause(), Evidence: &model.Evidence{
				Epoch: h.Epoch - 1, Created: noon - 5, Exp: noon - 1, Buyer: "old", Mode: "response", Ref: fmt.Sprintf("order-%d", h.made),
				Lines: []model.Line{{Cell: cells[0], Units: 1}},
			}}
		}
	}
	op.Run(h.Shard)
}

// sold is an order that has other lines than were held.
func (h *history) sold() model.Operation {
	o := model.Sold{ID: h.known(), Word: "answer", Cause: h.cause(), Charges: []model.Charge{{Field: "buyer:sale:orders|-|x", Amount: 1}}}
	o.More = o.ID + "-more"
	for _, c := range h.Perm(len(cells))[:1+h.IntN(3)] {
		o.Lines = append(o.Lines, model.Line{Cell: cells[c], Units: 1 + h.IntN64(3)})
	}
	return o
}

// swap is another cart of an order without an idempotency key, whose hold it makes before.
func (h *history) swap() model.Operation {
	h.made++
	o := model.Reserve{
		ID: fmt.Sprintf("r%d", h.made), Version: h.Version, NotAfter: h.Time + 500, HoldFor: 100 + h.IntN64(400), Margin: 1,
		Mode: "backend", Buyer: "buyer", Ref: fmt.Sprintf("order-%d", h.made), Lines: []model.Line{{Cell: cells[0], Units: 1 + h.IntN64(3)}, {Cell: cells[1], Units: 1}},
		Limits: []model.Limit{{Charge: model.Charge{Field: "buyer:sale:orders|-|x", Amount: 1}, Max: 1e9, To: noon + 1e10}},
	}
	o.Run(h.Shard)
	next := o
	h.made++
	next.ID, next.Lines = fmt.Sprintf("r%d", h.made), []model.Line{{Cell: cells[0], Units: 2}}
	return model.Swap{Old: o.ID, New: next}
}

// Movements is a journal in the form that the ledger reads.
func Movements(t testing.TB, entries []model.Entry) []journal.Movement {
	t.Helper()
	out := make([]journal.Movement, len(entries))
	for i, e := range entries {
		m := journal.Movement{
			Seq: e.Seq, Kind: e.Kind, Time: time.UnixMilli(e.Time).UTC(), ID: e.ID, Was: record.State(e.Was), Buyer: e.Buyer, Cause: e.Cause,
		}
		for _, l := range e.Lines {
			m.Lines = append(m.Lines, record.CellUnits{Cell: l.Cell, Units: l.Units})
		}
		if e.Record != "" {
			var err error
			if m.Record, err = record.Parse(e.Record); err != nil {
				t.Fatal(err)
			}
		}
		out[i] = m
	}
	return out
}

// Agrees fails unless a ledger has exactly what a shard of the model has.
func Agrees(t testing.TB, l ledger.Ledger, sale string, s *model.Shard) {
	t.Helper()
	ctx := Soon(t)
	at, err := l.Position(ctx, sale)
	if want := (ledger.Position{Epoch: s.Epoch, Seq: int64(len(s.Journal))}); err != nil || at != want {
		t.Fatalf("the ledger is at %+v (%v), want %+v", at, err, want)
	}
	Same(t, Read(t, l, sale, s.Epoch), Movements(t, s.Journal))
	stock, err := l.Stock(ctx, sale)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range stock {
		c, _ := s.Cell(have.Name)
		if want := (ledger.Cell{Name: have.Name, Stock: c.Stock, Available: c.Available, Held: c.Held, InDoubt: c.InDoubt, Confirmed: c.Confirmed}); have != want {
			t.Errorf("the stock is %+v, want %+v", have, want)
		}
	}
	names := make([]string, len(stock))
	for i, c := range stock {
		names[i] = c.Name
	}
	if !slices.IsSorted(names) || len(names) != len(s.Stock) {
		t.Errorf("the cells are %q", names)
	}
	var last string
	n := 0
	err = l.Reservations(ctx, sale, func(r *ledger.Reservation) error {
		want := *s.Records[r.ID]
		want.Probes = model.Probes{}
		if have, want := r.Text(), ledger.Text(want.Text()); have != want {
			t.Errorf("reservation %s is\n%q, want\n%q", r.ID, have, want)
		}
		if r.ID <= last {
			t.Errorf("reservation %s comes after %s", r.ID, last)
		}
		last = r.ID
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range s.Records {
		if r.State == model.Tombstone {
			n++
		} else if n == 0 {
			t.Errorf("reservation %s is missing", id)
		}
	}
	if n != len(s.Records) {
		t.Errorf("the ledger has %d reservations, want %d", n, len(s.Records))
	}
}
