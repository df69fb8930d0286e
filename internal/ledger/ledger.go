package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Ledger is a database that keeps movements. Its methods are safe for concurrent use by
// any number of processes. Sales are independent of each other.
type Ledger interface {
	// Migrate brings the tables up to date. Any number of processes may run it at once.
	Migrate(ctx context.Context) error
	// Acquire acquires or renews the lease to drain a sale for a time, by the database's clock.
	// False: another owner has it. In either case it returns the position from which to
	// continue.
	Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (Position, bool, error)
	// Append adds a batch and moves the position, all or nothing. It refuses with
	// ErrNotOwner when another owner has the sale, and with a PositionError when the
	// batch does not follow the position: so no movement is ever stored twice, and none
	// is missing.
	Append(ctx context.Context, sale, owner string, b *Batch) error
	// Giveup ends a lease, so that another owner need not wait for it to expire.
	Giveup(ctx context.Context, sale, owner string) error
	// Archive gives all that the ledger has of a sale another name, because the sale was
	// deleted and is loaded anew: the ledger then has nothing under the old one. It refuses with
	// ErrNotOwner when another owner has the sale, and changes nothing when the position is no
	// longer at.
	Archive(ctx context.Context, sale, owner string, at Position, as string) error
	// Archived is the last epoch of a sale that was archived; 0: none was.
	Archived(ctx context.Context, sale string) (epoch int64, err error)
	// Sales lists all sales of which the ledger has movements, without archived ones.
	Sales(ctx context.Context) ([]string, error)
	// Position is the last movement that the ledger has of a sale; zero: none.
	Position(ctx context.Context, sale string) (Position, error)
	// Stock is where the units are, computed from the movements, in the order of the cells.
	Stock(ctx context.Context, sale string) ([]Cell, error)
	// Reservations calls yield for every reservation of a sale, in the order of their
	// ids, until it returns an error.
	Reservations(ctx context.Context, sale string, yield func(*Reservation) error) error
	// Movements calls yield for up to most movements of an epoch after a number, in
	// their order, until it returns an error.
	Movements(ctx context.Context, sale string, epoch, after int64, most int, yield func(*journal.Movement) error) error
	// MovementsOfKinds calls yield for every movement of these kinds, of all epochs of the sale
	// in order, until it returns an error.
	MovementsOfKinds(ctx context.Context, sale string, kinds []string, yield func(epoch int64, m *journal.Movement) error) error
	// Trace counts what there is under the keyed hash of an identity, of all sales, archived ones too.
	Trace(ctx context.Context, hash string) ([]TracedRows, error)
	// Document is the sale's file and status as the last drained change left them;
	// empty: there is none.
	Document(ctx context.Context, sale string) (Document, error)
	// Restart moves the position of a sale to a number of another epoch, after the sale
	// has been rebuilt in Redis from this ledger. It fails when the position is no
	// longer from. Afterwards no owner has the sale.
	Restart(ctx context.Context, sale string, from, to Position) error
	Close() error
}

// TracedRows are the rows of a sale that have a keyed hash, or are about a reservation that has it.
type TracedRows struct {
	Sale         string `json:"sale"`
	Reservations int64  `json:"reservations"`
	Movements    int64  `json:"movements"`
}

// Position is a position in the journal of one epoch of a shard.
type Position struct {
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"`
}

// Batch is a stretch of one sale's journal.
type Batch struct {
	Epoch     int64
	Movements []journal.Movement // gapless
	// Document is the sale as it is now in Redis, when the batch has a change of it.
	Document *Document
}

// First is the number of the batch's first movement.
func (b *Batch) First() int64 { return b.Movements[0].Seq }

// Last is the number of the batch's last movement.
func (b *Batch) Last() int64 { return b.Movements[len(b.Movements)-1].Seq }

// Document is a sale's file as Redis has it.
type Document struct {
	Version int64
	Status  string
	File    string // canonical JSON
}

// Cell is where the units of one stock cell are.
type Cell struct {
	Name                                       string
	Stock, Available, Held, InDoubt, Confirmed int64
}

// CellOf is a cell with a name and the units of another one.
func CellOf(name string, c *record.Cell) Cell {
	return Cell{Name: name, Stock: c.Stock, Available: c.Available, Held: c.Held, InDoubt: c.InDoubt, Confirmed: c.Confirmed}
}

// Reservation is what the movements say of one: its record as Redis has it, but without how
// often the shop was asked about it, which the journal does not have.
type Reservation struct {
	ID string
	record.Record
}

// ErrNotOwner says that another process drains the sale.
var ErrNotOwner = errors.New("another process drains this sale")

// ErrNewerSchema says that a newer stockgate has changed the ledger's tables.
var ErrNewerSchema = errors.New("the ledger's tables are of a newer stockgate: update this one")

// ErrChanged says that the ledger's projections do not follow from its movements.
var ErrChanged = errors.New("the ledger has a reservation in another state than the journal: another program has changed its tables")

// PositionError says that a batch does not follow what the ledger has.
type PositionError struct {
	Sale       string
	Have, Want Position // Want: the one before the batch
	// Elsewhere says that another ledger follows the life of Want.
	Elsewhere bool
	// Missed is the position of the ledger from which the life of Want was rebuilt, which had not what
	// this ledger has; zero: it had, or is not known.
	Missed Position
	// Continues is the epoch that the life of Want goes on from; zero: none.
	Continues journal.Continued
}

func (e *PositionError) Error() string {
	switch {
	case e.Have == Position{}:
		return fmt.Sprintf("the journal of sale %s begins after entry %d, and the ledger has nothing of it: a ledger follows a sale from its first entry. "+
			"It was switched on later, or was removed or replaced; give this edge the ledger that has the beginning, see docs/books.md#the-ledger", e.Sale, e.Want.Seq)
	case e.Missed != Position{}:
		return fmt.Sprintf("sale %s was rebuilt from another ledger, which had it up to entry %d of epoch %d, and this one has it up to entry %d of epoch %d: what only this one has is not in redis, and may be sold again. "+
			"Pause the sale, and rebuild it from this ledger with `caddy stockgate rebuild %s --from ledger --force`, which merges what redis has; then give every edge this ledger",
			e.Sale, e.Missed.Seq, e.Missed.Epoch, e.Have.Seq, e.Have.Epoch, e.Sale)
	case e.Have.Epoch != e.Want.Epoch && e.Elsewhere:
		return fmt.Sprintf("the ledger has sale %s up to entry %d of an earlier life (its epoch was %d and is %d), and another ledger follows it since: give every edge that one, and never rebuild the sale from this one",
			e.Sale, e.Have.Seq, e.Have.Epoch, e.Want.Epoch)
	case e.Have.Epoch == e.Continues.Epoch && e.Have.Seq > e.Continues.Last:
		return fmt.Sprintf("redis has lost movements of sale %s: the ledger has it up to entry %d of epoch %d, and epoch %d goes on after entry %d of that, so what was sold since may be sold again; "+
			"pause the sale, and restore it with `caddy stockgate rebuild %s --from ledger`", e.Sale, e.Have.Seq, e.Have.Epoch, e.Want.Epoch, e.Continues.Last, e.Sale)
	case e.Have.Epoch == e.Continues.Epoch:
		return fmt.Sprintf("sale %s has a new epoch, %d: it was restored from a backup, or its store goes on without what its disk has lost. Redis has all that the ledger has of epoch %d, up to entry %d: pause the sale, and run "+
			"`caddy stockgate rebuild %s --from ledger`, so that the ledger follows it again", e.Sale, e.Want.Epoch, e.Have.Epoch, e.Have.Seq, e.Sale)
	case e.Have.Epoch != e.Want.Epoch:
		return fmt.Sprintf("redis has lost sale %s since the ledger followed it (its epoch was %d and is %d): restore it with `caddy stockgate rebuild %s --from ledger`",
			e.Sale, e.Have.Epoch, e.Want.Epoch, e.Sale)
	}
	if e.Have.Seq < e.Want.Seq {
		return fmt.Sprintf("the ledger has sale %s up to entry %d, and the journal begins after entry %d: what is between is in neither. The ledger was removed, replaced, put back from a backup or failed over to a replica that was behind, "+
			"or another edge follows the sale with a ledger of its own; give this edge the ledger that has these entries, see docs/books.md#the-ledger. Until then this one does not follow the sale",
			e.Sale, e.Have.Seq, e.Want.Seq)
	}
	return fmt.Sprintf("the ledger has sale %s up to entry %d, what comes begins after entry %d", e.Sale, e.Have.Seq, e.Want.Seq)
}

// HistoryError says that the journal and the ledger have different movements with the same
// number.
type HistoryError struct {
	Sale            string
	Seq             int64
	Redis, InLedger string // kind and id
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("redis and the ledger disagree about entry %d of sale %s (%s and %s): redis has lost movements that the ledger has, and sold on, "+
		"as in a crash without appendfsync always, or in a failover without replica_acks; pause the sale and restore it with `caddy stockgate rebuild %s --from ledger`",
		e.Seq, e.Sale, e.Redis, e.InLedger, e.Sale)
}

// Follows checks that a batch continues at a position. Drivers call it inside the
// transaction that appends.
func Follows(sale string, at Position, b *Batch) error {
	if len(b.Movements) == 0 {
		return errors.New("an empty batch")
	}
	for i := range b.Movements {
		if want := b.First() + int64(i); b.Movements[i].Seq != want {
			return &journal.GapError{Sale: sale, Want: want, Have: b.Movements[i].Seq}
		}
	}
	before := Position{b.Epoch, b.First() - 1}
	if at != before && at != (Position{}) || at == (Position{}) && before.Seq != 0 {
		return &PositionError{Sale: sale, Have: at, Want: before}
	}
	return nil
}
