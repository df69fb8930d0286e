package reservation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
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
	// Ordered are its lines as the buyer named the items, by which limits of bundles are charged; nil: not known.
	Ordered []sale.Line
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
	for _, l := range e.Lines {
		if l.Quantity < 1 {
			return "", fmt.Errorf("reservation %s has %d units of %s", e.ID, l.Quantity, l.SKU)
		}
	}
	args := append([]any{e.ID, string(SourceShop), cause}, e.args(record.ModeBackend)...)
	return s.settle(ctx, e.Sale, shard.Op(lua.Confirm, args...))
}

// args are what lua/confirm.lua takes of the evidence, after the cause.
func (e *Evidence) args(mode record.Mode) []any {
	args := []any{e.Epoch, e.Buyer, record.MsOf(e.Created), record.MsOf(e.Exp), e.Ref, string(mode)}
	return chargeArgs(lineArgs(args, e.Lines), e.Charges)
}

// movedIn begins the ids of purchases.
const movedIn = "moved-"

// MovedInID returns the reservation id of a purchase. hash is made of where the purchase was read.
func MovedInID(hash string) string { return movedIn + hash }

// IsMovedIn reports whether a reservation is a purchase that was made before the sale came here. The
// shop's orders do not name it.
func IsMovedIn(id string) bool { return strings.HasPrefix(id, movedIn) }

// Purchase was made before the sale came here.
type Purchase struct {
	// ID is a reservation id that is made of where the purchase was read, so that reading it
	// again gives the same, see MovedInID.
	ID string
	// Buyer is a keyed hash.
	Buyer   string
	Lines   []sale.Line
	Charges []Charge
}

// MoveIn enters purchases of before into a draft, each as a confirmed reservation. The same
// purchases again change nothing. It returns how many it has entered; those before one that is
// refused are entered. The error wraps shard.ErrRefused where the sale's state forbids it.
func (s *Store) MoveIn(ctx context.Context, id string, purchases []Purchase, cause string) (entered int64, err error) {
	const atOnce = 100 // movements of one entry of the journal
	for len(purchases) > 0 {
		n := min(len(purchases), atOnce)
		ops := make([]shard.Operation, n)
		for i, p := range purchases[:n] {
			args := lineArgs([]any{p.ID, p.Buyer, cause, string(record.ModeBackend)}, p.Lines)
			ops[i] = shard.Op(lua.MoveIn, chargeArgs(args, p.Charges)...)
		}
		replies, err := s.shard.Run(ctx, id, ops...)
		if err != nil {
			return entered, err
		}
		for i, r := range replies {
			switch r.Code() {
			case lua.OK:
				entered += r.Number(1)
			case lua.NoSale:
				return entered, shard.ErrNoSale
			default:
				return entered, moveInRefused(id, &purchases[i], r)
			}
		}
		purchases = purchases[n:]
	}
	return entered, s.shard.AwaitReplicas(ctx)
}

func moveInRefused(id string, p *Purchase, r shard.Reply) error {
	cell := ""
	if i := int(r.Number(1)); i >= 1 && i <= len(p.Lines) {
		cell = p.Lines[i-1].Cell()
	}
	switch r.Code() {
	case lua.KeyReused:
		return shard.Refused("a purchase has changed since it was entered: something still sells with the shop's own script. Stop it, delete the draft with "+
			"`caddy stockgate sale close %s` and `caddy stockgate sale delete %s --force`, and apply the file again", id, id)
	case lua.Conflict:
		return shard.Refused("the sale is %s: purchases of before are entered only into a draft", r.Text(1))
	case lua.Unknown:
		return shard.Refused("the sale has no %s, of which a purchase has units", cell)
	case lua.Short:
		return shard.Refused("%s: a purchase has more units than the %d that the sale has left: raise the stock of the file", cell, r.Number(2))
	}
	return fmt.Errorf("%w: movein gave %q", shard.ErrUnavailable, r.Code())
}

// checkMovedIn refuses a file that says that all purchases of before are here while Redis does
// not have them.
func (s *Store) checkMovedIn(ctx context.Context, was, next *sale.Sale) error {
	m := next.MovedIn
	if m == nil || !m.Done || was != nil && was.MovedIn != nil && was.MovedIn.Done {
		return nil
	}
	have := int64(0)
	if stock, err := s.SaleStock(ctx, next.ID); err == nil {
		for _, c := range stock.Items {
			have += c.Confirmed
		}
	} else if !errors.Is(err, shard.ErrNoSale) {
		return err
	}
	if have != m.Units {
		return shard.Refused("redis has %d units of purchases of before, the file says %d: apply the file with `caddy stockgate sale apply`, which enters them", have, m.Units)
	}
	return nil
}

// ShopOrder is what the shop says an order has, for a reservation of it.
type ShopOrder struct {
	// Lines are those of the reservation's sale, each item in a region once.
	Lines []sale.Line
	// Charges are what the lines beyond those held cost of the purchase limits.
	Charges []Charge
}

// Sale returns the operation that confirms a reservation whose order the shop has, with the
// order's lines: what was held beyond them goes back on sale, and what was sold beyond the hold
// gets a confirmed reservation of its own, or an unbacked one if its units are gone. Its id is
// MoreOf. To tell it again changes nothing. DiffersOf reads the reply.
func (o *ShopOrder) Sale(id string, word Authority, cause string) shard.Operation {
	args := lineArgs([]any{id, string(word), cause, MoreOf(id)}, o.Lines)
	return shard.Op(lua.Sold, chargeArgs(args, o.Charges)...)
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
