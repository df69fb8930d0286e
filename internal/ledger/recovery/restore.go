package recovery

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ErrOvertaken says that another process has loaded the sale or begun to restore it since
// this one read it. It is a shard.ErrRefused.
var ErrOvertaken = refused("another process has loaded or rebuilt the sale meanwhile: check the sale, and run the command again if it is still needed")

// Restorer writes the keys of a sale again in a store. It is safe for concurrent use.
type Restorer struct {
	store *reservation.Store
	shard *shard.Client
}

// NewRestorer makes a Restorer of a store's sales.
func NewRestorer(s *reservation.Store) *Restorer { return &Restorer{s, s.Shard()} }

// Restoration fills a shard again. Until Finish nothing is sold from it, and every other
// call about the sale fails with shard.ErrRestoring. It is not safe for concurrent use.
type Restoration struct {
	shard *shard.Client
	sale  string
	// Epoch is that of the new life.
	Epoch     int64
	forgotten time.Time // see Forget
	// pending are the values that wait to be sent, by the index of their key.
	pending [shard.WaitlistKey + 1][]any
	// waitlist is 1 if people have waited.
	waitlist int
}

// maxRestoreBatch is the number of values that one call sends: two for each field.
const maxRestoreBatch = 2000

// Renew begins to restore a sale: what Redis has of it becomes the previous life. seen is
// what the caller found there; if the sale has another life by now, Renew fails with
// ErrOvertaken and changes nothing. The new epoch is later than after, in ms since 1970,
// and than any epoch before. deleted is the epoch of the last sale under this id that was deleted
// before the one that is restored; 0: there was none.
func (s *Restorer) Renew(ctx context.Context, file *sale.Sale, doc string, version int64, seen reservation.Life, after, deleted int64) (*Restoration, error) {
	if err := s.shard.IndexSale(ctx, file.ID); err != nil {
		return nil, err
	}
	keys := append(s.shard.ShardKeys(file.ID), s.shard.PreviousKeys(file.ID)...)
	began := 0
	if seen.Restoring {
		began = 1
	}
	args := []any{lua.Schema, seen.Epoch, began, after, version, doc, record.MsOf(file.StartsAt), record.MsOf(file.EndsAt), deleted}
	raw, err := s.shard.Eval(ctx, lua.Renew, keys, args, s.shard.Options.ReplicaAcks)
	if err != nil {
		return nil, err
	}
	switch r := shard.Reply(raw); r.Code() {
	case lua.OK:
		return &Restoration{shard: s.shard, sale: file.ID, Epoch: r.Number(1)}, nil
	case lua.NewerSchema:
		return nil, shard.NewerSchema(r.Number(1))
	default:
		return nil, ErrOvertaken
	}
}

// Reservation restores a reservation, and binds these fields to it.
func (r *Restoration) Reservation(ctx context.Context, id string, f *record.Record, binds []string) error {
	r.add(shard.RecordsKey, id, f.Text())
	switch state, at := f.Listed(); state {
	case record.Held:
		r.add(shard.DeadlinesKey, record.MsOf(at), id)
	case record.InDoubt:
		r.add(shard.InDoubtKey, record.MsOf(at), id)
	case record.Unbacked:
		r.add(shard.UnbackedKey, record.MsOf(at), id)
	}
	for _, field := range binds {
		r.add(shard.BindingsKey, field, id)
	}
	return r.send(ctx, maxRestoreBatch)
}

// Forget leaves out a reservation that is over: no token of it may recreate it.
func (r *Restoration) Forget(f *record.Record) {
	if f.Exp.After(r.forgotten) {
		r.forgotten = f.Exp
	}
}

// Others restores a binding field that names further reservations of a ref.
func (r *Restoration) Others(ctx context.Context, field, ids string) error {
	r.add(shard.BindingsKey, field, ids)
	return r.send(ctx, maxRestoreBatch)
}

// Cell restores a stock cell.
func (r *Restoration) Cell(ctx context.Context, name string, c record.Cell) error {
	r.add(shard.CellsKey, name, fmt.Sprintf("%d %d %d %d %d", c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed))
	return r.send(ctx, maxRestoreBatch)
}

// Limit restores a counter of a purchase limit.
func (r *Restoration) Limit(ctx context.Context, field string, c record.Count) error {
	r.add(shard.LimitsKey, field, strconv.FormatInt(c.Charged, 10)+" "+strconv.FormatInt(c.Pending, 10))
	return r.send(ctx, maxRestoreBatch)
}

// Unpaid restores how many unpaid holds a counter has. When its other holds ended is not
// known.
func (r *Restoration) Unpaid(ctx context.Context, field string, held int64) error {
	r.add(shard.UnpaidKey, field, strconv.FormatInt(held, 10))
	return r.send(ctx, maxRestoreBatch)
}

// Adjustment restores an adjustment, with the cell's stock after it.
func (r *Restoration) Adjustment(ctx context.Context, id string, l record.CellUnits, stock int64) error {
	r.add(shard.AdjustmentsKey, id, fmt.Sprintf("%s %d %d", l.Cell, l.Units, stock))
	return r.send(ctx, maxRestoreBatch)
}

// Return restores a return: the units that came back with it, and all that had come back
// by then.
func (r *Restoration) Return(ctx context.Context, id, returnID string, restock bool, lines, answer []record.CellUnits) error {
	flag := "0 "
	if restock {
		flag = "1 "
	}
	r.add(shard.ReturnsKey, id+"|"+returnID, flag+record.UnitsText(lines)+"\t"+record.UnitsText(answer))
	return r.send(ctx, maxRestoreBatch)
}

func (r *Restoration) add(place int, pair ...any) {
	r.pending[place] = append(r.pending[place], pair...)
}

// send sends the values of every key for which at least so many wait.
func (r *Restoration) send(ctx context.Context, least int) error {
	for place, values := range r.pending {
		if len(values) == 0 || len(values) < least {
			continue
		}
		args := append([]any{r.Epoch, place + 1}, values...)
		raw, err := r.shard.Eval(ctx, lua.Restore, r.shard.ShardKeys(r.sale), args, r.shard.Options.ReplicaAcks)
		if err != nil {
			return err
		}
		if shard.Reply(raw).Code() != lua.OK {
			return ErrOvertaken
		}
		r.pending[place] = values[:0]
	}
	return nil
}

// Flush sends all values that wait.
func (r *Restoration) Flush(ctx context.Context) error { return r.send(ctx, 0) }

// Finish begins the new life. The shard's clock is then at clock or later.
func (r *Restoration) Finish(ctx context.Context, clock time.Time, status sale.Status, cause string) error {
	if err := r.Flush(ctx); err != nil {
		return err
	}
	replies, err := r.shard.RunReplicated(ctx, r.sale, shard.Op(lua.Rebuilt, r.Epoch, record.MsOf(clock), string(status), cause, record.MsOf(r.forgotten), r.waitlist))
	if err != nil {
		return err
	}
	if replies[0].Code() != lua.OK {
		return ErrOvertaken
	}
	return nil
}
