package reservation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// PriorAnswer says what the shop has answered to an attempt before its dry run.
type PriorAnswer string

const (
	NotSold  PriorAnswer = "0"
	WasSold  PriorAnswer = "1"
	SoldPast PriorAnswer = "past" // the edge itself would have refused the attempt, so nothing is checked
)

// DryRun says how Reserve would answer a request, and holds and charges nothing. What the shop
// has sold is noted apart, and is gone for later dry runs: see lua/dryrun.lua. The request's ID
// and counters of unpaid holds are not used. The refusal in shadow is that of a limit in shadow.
// The errors are those of Reserve; a *AlreadyBound also says that the order was noted before.
func (s *Store) DryRun(ctx context.Context, c *ReserveRequest, sold PriorAnswer) (shadow, refusal *sale.Refusal, err error) {
	if len(c.Lines) == 0 || !validRef(c.Ref) {
		return nil, nil, errors.New("a dry run needs lines, and a ref of 1 to 128 printable ASCII characters without space")
	}
	bare := *c
	bare.ID, bare.Unpaid, bare.View = "", Owed{}, nil
	if bare.Binding.Print == "" { // of the buyer and the lines: it ends with the attempt
		bare.Binding = Binding{}
	}
	e := bare.encode()
	e.rest = string(sold)
	a, err := s.dryRuns.Do(ctx, c.Sale, &combine.Ticket[*encodedRequest, result]{Request: e, Weight: 4 + len(c.Lines) + len(c.Charges)})
	if err != nil {
		return nil, nil, err
	}
	hold, refusal, err := s.reserved(&bare, a.Reply)
	return hold.Shadow, refusal, err
}

// sendDryRuns makes dry runs for one sale in one call. They promise nothing, so that they need
// neither replicas nor a lease.
func (s *Store) sendDryRuns(sale string, batch []*combine.Ticket[*encodedRequest, result]) {
	until := combine.CallUntil(batch, s.shard.Options.Timeout)
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	claims := make([]*encodedRequest, len(batch))
	clock := s.shard.Clock(sale)
	now, known := clock.Now()
	for i, t := range batch {
		claims[i] = t.Request
		claims[i].notAfter = maxTime
		if known {
			claims[i].notAfter = now + time.Until(until).Milliseconds()
		}
	}
	term, journaled := s.shard.History(ctx, sale)
	before := clock.Mark()
	keys := append(s.shard.ShardKeys(sale), s.shard.ShadowKey(sale))
	raw, failed := s.shard.Eval(ctx, lua.Reserve, keys, reserveArgs(term, journaled, claims), 0)
	replies, seq, err := s.shard.Replies(ctx, sale, before, raw, len(claims), 0, failed)
	switch {
	case err == nil:
		for i, t := range batch {
			t.Answer(result{Reply: replies[i], Seq: seq}, nil)
		}
	case len(batch) > 1 && shard.ScriptFailed(err): // data that one of them reads is damaged
		half := len(batch) / 2
		s.sendDryRuns(sale, batch[:half])
		s.sendDryRuns(sale, batch[half:])
	default:
		combine.FailAll(batch, err)
	}
}

// maxTime is later than any time of a script, in ms.
const maxTime = 99_999_999_999_999

// ShadowUnits are units that the shop sold while a gate was in shadow: what the gate would have
// sold, and what was sold past it.
type ShadowUnits struct {
	Sold int64 `json:"sold"`
	Past int64 `json:"past"`
}

// ShadowCell is what the shop sold of one cell.
type ShadowCell struct {
	SKU    string `json:"sku"`
	Region string `json:"region,omitempty"`
	ShadowUnits
}

// shadowPage is how many cells are read at a time.
const shadowPage = 1000

// Shadow reads what dry runs have noted of a sale: the sum; nil: nothing.
func (s *Store) Shadow(ctx context.Context, sale string) (*ShadowUnits, error) {
	units, err := s.shadowUnits(ctx, sale, []string{"sold", "past"})
	if err != nil || units[0] == (ShadowUnits{}) {
		return nil, err
	}
	return &units[0], nil
}

// ShadowCells reads what dry runs have noted of some cells: those of which the shop has sold
// something.
func (s *Store) ShadowCells(ctx context.Context, id string, cells []record.Cell) (out []ShadowCell, err error) {
	for some := range slices.Chunk(cells, shadowPage) {
		fields := make([]string, 0, 2*len(some))
		for i := range some {
			name := sale.Cell(some[i].SKU, some[i].Region)
			fields = append(fields, "s|"+name, "p|"+name)
		}
		units, err := s.shadowUnits(ctx, id, fields)
		if err != nil {
			return nil, err
		}
		for i, u := range units {
			if u != (ShadowUnits{}) {
				out = append(out, ShadowCell{some[i].SKU, some[i].Region, u})
			}
		}
	}
	return out, nil
}

// shadowUnits reads pairs of fields.
func (s *Store) shadowUnits(ctx context.Context, sale string, fields []string) ([]ShadowUnits, error) {
	values, err := s.shard.Shadow(ctx, sale, fields...)
	if err != nil {
		return nil, err
	}
	units := make([]ShadowUnits, len(values)/2)
	for i := range units {
		units[i] = ShadowUnits{values.Number(2 * i), values.Number(2*i + 1)}
	}
	return units, nil
}

// ForgetShadow drops what dry runs have noted of a sale: the next one begins with the stock of
// the sale.
func (s *Store) ForgetShadow(ctx context.Context, sale string) error {
	return s.shard.DropShadow(ctx, sale)
}
