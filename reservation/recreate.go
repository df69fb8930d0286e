package reservation

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
)

// Evidence is what a verified token says about a reservation that Redis may have lost.
type Evidence struct {
	Sale, ID string
	// Buyer is in clear for edge.Edge.ConfirmWith; Store.Recreate takes its hash.
	Buyer        string
	Epoch        int64 // of the shard that held the stock
	Created, Exp time.Time
	Ref          string // the shop's own name of the order; empty: none
	Lines        []sale.Line
	// Charges are what it costs of the purchase limits. edge.Edge.ConfirmWith fills them in.
	Charges []Charge
}

// Recreate confirms a reservation with source SourceShop. If it is of an older epoch and
// Redis no longer has it, Recreate makes it again from the evidence, with a movement
// recreated in the journal. It fails with a *RefundNeededError if the units are gone. If
// Redis has the reservation, its record counts and not the evidence.
func (s *Store) Recreate(ctx context.Context, e *Evidence, cause string) (record.State, error) {
	if !validRef(e.Ref) {
		return "", fmt.Errorf("reservation %s: a ref has 1 to 128 printable ASCII characters without space", e.ID)
	}
	args := []any{e.ID, string(SourceShop), cause, e.Epoch, e.Buyer, record.MsOf(e.Created), record.MsOf(e.Exp), e.Ref, string(record.ModeBackend), len(e.Lines)}
	for _, l := range e.Lines {
		if l.Quantity < 1 {
			return "", fmt.Errorf("reservation %s has %d units of %s", e.ID, l.Quantity, l.SKU)
		}
		args = append(args, l.Cell(), l.Quantity)
	}
	args = append(args, len(e.Charges))
	for _, c := range e.Charges {
		args = append(args, c.Field, c.Amount)
	}
	return s.settle(ctx, e.Sale, shard.Op("confirm", args...))
}

// Order is what the shop says an order has, for a reservation of it.
type Order struct {
	// Lines are those of the reservation's sale, each item in a region once.
	Lines []sale.Line
	// Charges are what the lines beyond those held cost of the purchase limits.
	Charges []Charge
}

// Sale returns the operation that confirms a reservation whose order the shop has, with the
// order's lines: what was held beyond them goes back on sale, and what was sold beyond the hold
// gets a confirmed reservation of its own, or an unbacked one if its units are gone. Its id is
// MoreOf. To tell it again changes nothing. DiffersOf reads the reply.
func (o *Order) Sale(id string, word Source, cause string) shard.Operation {
	args := []any{id, string(word), cause, MoreOf(id), len(o.Lines)}
	for _, l := range o.Lines {
		args = append(args, l.Cell(), l.Quantity)
	}
	args = append(args, len(o.Charges))
	for _, c := range o.Charges {
		args = append(args, c.Field, c.Amount)
	}
	return shard.Op("sold", args...)
}

// MoreOf returns the id of the reservation of what was sold beyond a hold.
func MoreOf(id string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(id+" more")).String() }

// Differs is how an order differs from its reservation: "cell quantity …".
type Differs struct {
	Fewer, More string
	// MoreState is the state of the reservation MoreOf: confirmed or unbacked.
	MoreState record.State
}

// DiffersOf reads the reply to Order.Sale.
func DiffersOf(r shard.Reply) Differs {
	if r.Code() != lua.OK {
		return Differs{}
	}
	return Differs{r.Text(2), r.Text(3), record.State(r.Text(4))}
}
