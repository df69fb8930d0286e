package waitlist

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Desk takes people in and lets them leave, those who come at the same time in one call. It is safe for
// concurrent use.
type Desk struct {
	store *reservation.Store
	calls *combine.Combiner[shard.Operation, shard.Reply]
}

// NewDesk makes a desk.
func NewDesk(s *reservation.Store) *Desk {
	d := &Desk{store: s}
	d.calls = combine.NewCombiner(d.send)
	return d
}

// Close rejects people who come, and waits for the calls under way.
func (d *Desk) Close() {
	d.calls.Close()
	d.calls.Wait()
}

func (d *Desk) send(saleID string, batch []*combine.Ticket[shard.Operation, shard.Reply]) {
	ctx, cancel := context.WithDeadline(context.Background(), combine.CallUntil(batch, d.store.Shard().Options.Timeout))
	defer cancel()
	for _, of := range [...]*lua.Operation{lua.Enter, lua.Withdraw} { // which are in two scripts
		var tickets []*combine.Ticket[shard.Operation, shard.Reply]
		var ops []shard.Operation
		for _, t := range batch {
			if t.Request.Operation == of {
				tickets, ops = append(tickets, t), append(ops, t.Request)
			}
		}
		if len(ops) == 0 {
			continue
		}
		replies, err := d.store.RunPromised(ctx, saleID, ops...)
		for i, t := range tickets {
			if err != nil {
				t.Fail(err)
			} else {
				t.Answer(replies[i], nil)
			}
		}
	}
}

// Entrant is a person who enters.
type Entrant struct {
	Sale     string
	Cell     string
	Quantity int64
	// Buyer is a hash, and Identities has the other hashes, see IdentitiesText.
	Buyer, Identities string
	// Most is how many people the list may have.
	Most int64
}

// Entered is the answer to a person who enters.
type Entered struct {
	Number   int64
	Cell     string
	Quantity int64
	Offered  bool
	// New is false where the person was on the list already.
	New bool
}

// Enter puts a person on the list, or says why not. A person who is on the list already has that entry, also for
// another item. An error comes from Redis: whether the person is on the list is not known then, and the same
// again has no other effect.
func (d *Desk) Enter(ctx context.Context, p *Entrant) (Entered, *sale.Refusal, error) {
	op := shard.Op(lua.Enter, p.Cell, p.Quantity, p.Most, p.Buyer, p.Identities)
	r, err := d.calls.Do(combine.Within(ctx, d.store.Shard().Timeout()), p.Sale, &combine.Ticket[shard.Operation, shard.Reply]{Request: op, Weight: 4})
	if err != nil {
		return Entered{}, nil, err
	}
	switch r.Code() {
	case lua.OK:
		return Entered{Number: r.Number(1), Offered: r.Text(2) == "offered", Cell: r.Text(3), Quantity: r.Number(4), New: r.Number(6) == 1}, nil, nil
	case lua.TwoEntries:
		return Entered{}, sale.Refuse(sale.TwoEntries), nil
	case lua.Available:
		return Entered{}, sale.Refuse(sale.UnitsFree), nil
	case lua.QueueFull:
		return Entered{}, sale.Refuse(sale.ListFull), nil
	case lua.Unknown, lua.NoSale:
		return Entered{}, reservation.RefuseLost, nil
	case lua.NotStarted:
		return Entered{}, reservation.RefuseNotStarted(r), nil
	case lua.Paused:
		return Entered{}, sale.Refuse(sale.PausedSale), nil
	case lua.Ended:
		return Entered{}, sale.Refuse(sale.Ended), nil
	case lua.Closed:
		return Entered{}, sale.Refuse(sale.ClosedSale), nil
	}
	return Entered{}, nil, fmt.Errorf("%w: enter gave %q", shard.ErrUnavailable, r.Code())
}

// Leave takes an entry off the list, of this buyer (a hash) or, where that is empty, of any. Number 0 stands for the
// buyer's, whichever it is. An offer ends. It reports whether there was such an entry.
func (d *Desk) Leave(ctx context.Context, saleID string, number int64, buyer, cause string) (bool, error) {
	named := ""
	if number > 0 {
		named = strconv.FormatInt(number, 10)
	}
	op := shard.Op(lua.Withdraw, named, buyer, cause)
	r, err := d.calls.Do(combine.Within(ctx, d.store.Shard().Timeout()), saleID, &combine.Ticket[shard.Operation, shard.Reply]{Request: op, Weight: 4, Settles: true})
	if err != nil {
		return false, err
	}
	switch r.Code() {
	case lua.OK:
		return true, nil
	case lua.NotFound:
		return false, nil
	}
	return false, fmt.Errorf("%w: withdraw gave %q", shard.ErrUnavailable, r.Code())
}

// retryAfter is how long an entry is left alone that could not get an offer, because another order of the person
// is under way.
const retryAfter = 5 * time.Second
