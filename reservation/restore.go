package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/sale"
)

// restoringError: a sale is being restored, and nobody may touch it.
type restoringError struct{}

func (restoringError) Error() string {
	return "the sale is being rebuilt from the ledger: try again when that is done; if it broke off, run `caddy stockgate rebuild` again"
}

// Is says that it is as if Redis did not answer: whatever was asked for may be asked
// for again.
func (restoringError) Is(target error) bool { return target == ErrUnavailable }

// ErrRestoring is an ErrUnavailable: the sale is being restored.
var ErrRestoring error = restoringError{}

// ErrOvertaken: somebody else has begun to restore the sale, or has loaded it, since it
// was looked at.
var ErrOvertaken = errors.New("somebody else has loaded or rebuilt the sale meanwhile: look at it, and begin again if it is still needed")

// Life is what Redis has of a sale.
type Life struct {
	// Epoch names the life; 0: Redis has nothing of the sale, or only a part of it.
	Epoch int64 `json:"epoch"`
	// Seq is the newest number in its journal.
	Seq     int64       `json:"seq"`
	Status  sale.Status `json:"status,omitempty"`
	Version int64       `json:"version,omitempty"`
	// Restoring says that a restoration has begun and was not finished.
	Restoring bool `json:"restoring,omitempty"`
	// Aside says that there is something of another life, which was set aside, AsideStatus
	// is the sale's status in it.
	Aside       bool        `json:"aside,omitempty"`
	AsideStatus sale.Status `json:"aside_status,omitempty"`
	// Now is by the clock of the sale's Redis.
	Now time.Time `json:"now"`
}

// Life looks at what Redis has of a sale.
func (s *Store) Life(ctx context.Context, id string) (Life, error) {
	if _, err := s.run(ctx, s.scripts.Settle, id); err != nil { // it tells the time
		return Life{}, err
	}
	v, err := s.redis.HMGet(ctx, s.shardKeys(id)[metaKey], "epoch", "seq", "status", "version", "restoring", "carrying").Result()
	if err != nil {
		return Life{}, explain(err)
	}
	aside, err := s.redis.Exists(ctx, s.asideKeys(id)...).Result()
	if err != nil {
		return Life{}, explain(err)
	}
	was, err := s.redis.HMGet(ctx, s.asideKeys(id)[metaKey], "status").Result()
	if err != nil {
		return Life{}, explain(err)
	}
	number := func(i int) int64 {
		text, _ := v[i].(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	status, _ := v[2].(string)
	asideStatus, _ := was[0].(string)
	return Life{
		Epoch: number(0), Seq: number(1), Status: sale.Status(status), Version: number(3), Restoring: v[4] != nil,
		Aside: aside > 0 || v[5] != nil, AsideStatus: sale.Status(asideStatus), Now: s.Now(id),
	}, nil
}

// Restoration fills a shard anew. Until Finish nothing is sold from it, and every
// other call about the sale fails with ErrRestoring. It is not safe for concurrent use.
type Restoration struct {
	store *Store
	sale  string
	// Epoch is that of the new life.
	Epoch     int64
	forgotten time.Time // see Forget
	// pending are the pieces that wait, for each place among the keys.
	pending [unpaidKey + 1][]any
}

// restoreMost is how many values one call carries: two for each field.
const restoreMost = 2000

// Renew begins to restore a sale: what Redis has of it is set aside. seen is what was
// found there; if it has another life since, it fails with ErrOvertaken and nothing has
// changed. The new epoch is later than after, ms since 1970, and than any before.
func (s *Store) Renew(ctx context.Context, file *sale.Sale, doc string, version int64, seen Life, after int64) (*Restoration, error) {
	if err := s.redis.SAdd(ctx, s.salesKey(), file.ID).Err(); err != nil {
		return nil, explain(err)
	}
	keys := append(s.shardKeys(file.ID), s.asideKeys(file.ID)...)
	began := 0
	if seen.Restoring {
		began = 1
	}
	args := []any{lua.Schema, seen.Epoch, began, after, version, doc, ms(file.StartsAt), ms(file.EndsAt)}
	raw, err := s.eval(ctx, s.redis, s.scripts.Renew, keys, args, s.options.ReplicaAcks)
	if err != nil {
		return nil, err
	}
	switch r := reply(raw); r.code() {
	case lua.OK:
		return &Restoration{store: s, sale: file.ID, Epoch: r.number(1)}, nil
	case lua.NewerSchema:
		return nil, ErrNewerSchema
	default:
		return nil, ErrOvertaken
	}
}

// Reservation puts a reservation back, and binds these fields to it.
func (r *Restoration) Reservation(ctx context.Context, id string, f *RecordFields, binds []string) error {
	r.add(recordsKey, id, f.Text())
	switch state, at := f.Listed(); state {
	case Held:
		r.add(deadlinesKey, msOf(at), id)
	case InDoubt:
		r.add(inDoubtKey, msOf(at), id)
	case Unbacked:
		r.add(unbackedKey, msOf(at), id)
	}
	for _, field := range binds {
		r.add(bindingsKey, field, id)
	}
	return r.send(ctx, restoreMost)
}

// Forget leaves out a reservation that is over: no token of it may make it again.
func (r *Restoration) Forget(f *RecordFields) {
	if f.Exp.After(r.forgotten) {
		r.forgotten = f.Exp
	}
}

// Others puts back which further reservations go by a ref.
func (r *Restoration) Others(ctx context.Context, field, ids string) error {
	r.add(bindingsKey, field, ids)
	return r.send(ctx, restoreMost)
}

// Cell puts a stock cell back.
func (r *Restoration) Cell(ctx context.Context, name string, c Cell) error {
	r.add(cellsKey, name, fmt.Sprintf("%d %d %d %d %d", c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed))
	return r.send(ctx, restoreMost)
}

// Limit puts what a field of the limits has counted back.
func (r *Restoration) Limit(ctx context.Context, field string, c Counter) error {
	r.add(limitsKey, field, strconv.FormatInt(c.Charged, 10)+" "+strconv.FormatInt(c.Pending, 10))
	return r.send(ctx, restoreMost)
}

// Unpaid puts back how many unpaid holds a counter has. When others ended is not known.
func (r *Restoration) Unpaid(ctx context.Context, field string, held int64) error {
	r.add(unpaidKey, field, strconv.FormatInt(held, 10))
	return r.send(ctx, restoreMost)
}

// Adjustment puts an adjustment back, with the cell's stock after it.
func (r *Restoration) Adjustment(ctx context.Context, id string, l CellUnits, stock int64) error {
	r.add(adjustmentsKey, id, fmt.Sprintf("%s %d %d", l.Cell, l.Units, stock))
	return r.send(ctx, restoreMost)
}

// Return puts a return back: what came back with it, and all that had come back then.
func (r *Restoration) Return(ctx context.Context, id, returnID string, restock bool, lines, answer []CellUnits) error {
	flag := "0 "
	if restock {
		flag = "1 "
	}
	r.add(returnsKey, id+"|"+returnID, flag+UnitsText(lines)+"\t"+UnitsText(answer))
	return r.send(ctx, restoreMost)
}

func (r *Restoration) add(place int, pair ...any) {
	r.pending[place] = append(r.pending[place], pair...)
}

// send sends what waits in every place where it is at least so many values.
func (r *Restoration) send(ctx context.Context, least int) error {
	for place, values := range r.pending {
		if len(values) == 0 || len(values) < least {
			continue
		}
		args := append([]any{r.Epoch, place + 1}, values...)
		raw, err := r.store.eval(ctx, r.store.redis, r.store.scripts.Restore, r.store.shardKeys(r.sale), args, r.store.options.ReplicaAcks)
		if err != nil {
			return err
		}
		if reply(raw).code() != lua.OK {
			return ErrOvertaken
		}
		r.pending[place] = values[:0]
	}
	return nil
}

// Flush sends what waits.
func (r *Restoration) Flush(ctx context.Context) error { return r.send(ctx, 0) }

// Finish begins the new life. The shard's clock is then at least at a time.
func (r *Restoration) Finish(ctx context.Context, clock time.Time, status sale.Status, cause string) error {
	if err := r.Flush(ctx); err != nil {
		return err
	}
	replies, err := r.store.runReplicated(ctx, r.store.scripts.Settle, r.sale, operation{"rebuilt", []any{r.Epoch, msOf(clock), string(status), cause, msOf(r.forgotten)}})
	if err != nil {
		return err
	}
	if replies[0].code() != lua.OK {
		return ErrOvertaken
	}
	return nil
}
