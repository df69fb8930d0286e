package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Return is what came back of a confirmed reservation.
type Return struct {
	// ID is made by the caller: 1 to 128 printable ASCII characters without space. The same
	// id again has no effect and gives the same answer. A return of all that is left equals
	// one that names these units.
	ID string
	// Restock puts the units back on sale; without it they leave the stock.
	Restock bool
	// Lines are the units; of a bundle all of its components. Default: all that is left of the
	// reservation.
	Lines []sale.Line
	// Cause names the operator and the reason, for the journal.
	Cause string
}

// ErrReused says that a return id was used for another return of the reservation.
var ErrReused = errors.New("this return id was used for another return: give each return an id of its own")

// TooManyError says that a reservation has fewer units left than are to be returned.
type TooManyError struct {
	Line sale.Line // its SKU is empty if the return was of all that is left
	Left int64
}

func (e *TooManyError) Error() string {
	if e.Line.SKU == "" {
		return "nothing is left to be returned"
	}
	if e.Left == 0 {
		return fmt.Sprintf("%d units of %s are to be returned, but the order has none, or all of them were returned before", e.Line.Quantity, e.Line.Cell())
	}
	return fmt.Sprintf("%d units of %s are to be returned, but only %d are left", e.Line.Quantity, e.Line.Cell(), e.Left)
}

// Return takes units back from a confirmed reservation, and gives back what they cost of
// the purchase limits. It returns all units that were returned so far. It fails with:
//
//   - a *ConflictError if the reservation is not confirmed
//   - a *TooManyError if fewer units are left
//   - ErrReused if the id was used for another return
func (s *Store) Return(ctx context.Context, sale, id string, r Return) ([]sale.Line, error) {
	if r.ID == "" || !validRef(r.ID) {
		return nil, errors.New("a return id has 1 to 128 printable ASCII characters without space")
	}
	restock := 0
	if r.Restock {
		restock = 1
	}
	for _, l := range r.Lines {
		if l.Quantity < 1 {
			return nil, fmt.Errorf("%d units of %s cannot be returned", l.Quantity, l.SKU)
		}
	}
	// read first, so that nothing can fail after the return
	file, err := s.file(ctx, sale)
	if err != nil {
		return nil, err
	}
	names := file.Lines()
	r.Lines = file.Unbundle(r.Lines)
	args := lineArgs([]any{id, r.ID, restock, r.Cause}, r.Lines)
	answer, err := s.Resolve(ctx, sale, shard.Op(lua.Return, args...))
	if few, ok := errors.AsType[*TooManyError](err); ok {
		if i := int(answer.Number(1)); i >= 1 && i <= len(r.Lines) {
			few.Line = r.Lines[i-1]
		}
	}
	if err != nil {
		return nil, err
	}
	returned, _ := record.ParseUnits(answer.Text(1)) // the return is made: nothing may fail any more
	return linesOf(returned, names), nil
}
