package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ApplyOptions says how to apply a file.
type ApplyOptions struct {
	// DryRun reports what would change and changes nothing.
	DryRun bool
	// Force allows a new kind of limit on a sale that is open already; it starts
	// counting at 0.
	Force bool
	// New loads a sale that Redis has lost as a new sale.
	New bool
	// Deleted is the epoch of the last sale under this id that was deleted, as far as the caller
	// knows it: a new sale owes nothing of that one. Redis's own note counts too, but is lost with it.
	Deleted int64
	// By names the operator, for the journal.
	By string
}

// Applied is what applying a file did.
type Applied struct {
	// Changes has one sentence for each difference.
	Changes []string `json:"changes"`
	// Warnings say what is likely to be a mistake, although it was applied.
	Warnings []string `json:"warnings,omitempty"`
	// Same says that there is no difference.
	Same    bool  `json:"same"`
	DryRun  bool  `json:"dry_run,omitempty"`
	Version int64 `json:"version"`
}

// refusedChange is what a dry run says of a change that is refused; nil: it was none.
func refusedChange(o ApplyOptions, err error) *Applied {
	if refused, ok := errors.AsType[*sale.RefusedChange](err); ok && o.DryRun {
		return &Applied{Changes: refused.Notes, DryRun: true}
	}
	return nil
}

// Apply loads a sale, or the changes of its file since it was applied last; units from
// Adjust are kept. It applies all or nothing, and the same file again changes nothing. The
// error wraps shard.ErrRefused if the sale's state does not allow the change; of a dry run, the changes are returned
// beside it.
func (s *Store) Apply(ctx context.Context, next *sale.Sale, o ApplyOptions) (*Applied, error) {
	for range 10 {
		current, err := s.Load(ctx, next.ID)
		if err != nil && !errors.Is(err, shard.ErrNoSale) {
			return nil, err
		}
		if current == nil {
			if current, err = s.beforeFirst(ctx, next.ID, o); err != nil {
				return nil, err
			}
		}
		change, err := sale.Plan(current.Sale, current.Status, next, o.Force)
		if err != nil {
			return refusedChange(o, err), fmt.Errorf("%w: %w", shard.ErrRefused, err)
		}
		next := next
		if current.Sale != nil && current.Sale.MovedIn != nil && next.MovedIn == nil {
			kept := *next
			kept.MovedIn = current.Sale.MovedIn // it is known, whatever file comes next
			next = &kept
		}
		doc, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		out := &Applied{Changes: change.Notes, Same: change.Same, DryRun: o.DryRun, Version: current.Version}
		err = s.checkMovedIn(ctx, current.Sale, next)
		switch {
		case err != nil && !o.DryRun:
			return nil, err
		case err == nil && o.DryRun:
			err = s.tryDeltas(ctx, next.ID, change)
		}
		if o.DryRun {
			return out, err
		}
		if change.Same {
			// an earlier call may have failed to announce it, or may have applied it
			// without the replicas
			if err := s.journal.Announce(ctx, next.ID); err != nil {
				return nil, err
			}
			kept, err := s.keeps(ctx, next.ID, current.Version)
			if err != nil {
				return nil, err
			}
			if kept {
				return out, nil
			}
			continue
		}
		deleted := int64(0)
		if current.Version == 0 {
			if deleted, err = s.journal.DeletedEpoch(ctx, next.ID); err != nil {
				return nil, err
			}
		}
		r, err := s.applyOnce(ctx, current.Version, max(deleted, o.Deleted), next, doc, change, o.By)
		if err != nil {
			return nil, err
		}
		switch r.Code() {
		case lua.OK:
			out.Version = r.Number(1)
			// after its shard is there: the index names nothing that Redis does not have
			if err := s.journal.Announce(ctx, next.ID); err != nil {
				return nil, err
			}
			// the notice of the script came before the index named the sale
			if err := s.shard.NotifySale(ctx, next.ID); err != nil {
				return nil, err
			}
			return out, s.shard.AwaitReplicas(ctx)
		case lua.StaleVersion:
			continue // another process has changed the sale meanwhile
		}
		i := int(r.Number(1))
		if i < 1 || i > len(change.Deltas) {
			return nil, fmt.Errorf("%w: apply gave %q", shard.ErrUnavailable, r.Code())
		}
		return nil, deltaRefused(change.Deltas[i-1], r.Code(), r.Number(2), r.Number(3))
	}
	return nil, shard.Refused("the sale is being changed by others all the time; try again")
}

// beforeFirst returns what a sale is before its first apply. It refuses a sale that the
// index names and Redis does not have: that sale was lost.
func (s *Store) beforeFirst(ctx context.Context, id string, o ApplyOptions) (*Loaded, error) {
	none := &Loaded{Status: sale.Draft}
	if o.New {
		return none, nil
	}
	index, err := s.journal.Sales(ctx)
	if err != nil {
		return nil, err
	}
	if _, named := slices.BinarySearch(index, id); !named {
		return none, nil
	}
	current, err := s.Load(ctx, id) // another caller may have applied it meanwhile
	if errors.Is(err, shard.ErrNoSale) {
		return nil, RefuseAnew(id)
	}
	return current, err
}

// applyOnce changes a sale of this version; 0: it is new, and deleted is the epoch of the last one
// under its id that was deleted, or 0.
func (s *Store) applyOnce(ctx context.Context, version, deleted int64, next *sale.Sale, doc []byte, change *sale.Change, by string) (shard.Reply, error) {
	args := make([]any, 0, 7+3*len(change.Deltas))
	args = append(args, version, doc, record.MsOf(next.StartsAt), record.MsOf(next.EndsAt), by, deleted, len(change.Deltas))
	for _, d := range change.Deltas {
		removed := 0
		if d.Removed {
			removed = 1
		}
		args = append(args, d.Cell, d.Delta, removed)
	}
	replies, err := s.shard.Run(ctx, next.ID, shard.Op(lua.Apply, args...))
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// tryDeltas returns the error with which apply.lua would refuse a change.
func (s *Store) tryDeltas(ctx context.Context, id string, change *sale.Change) error {
	stock, err := s.SaleStock(ctx, id)
	if errors.Is(err, shard.ErrNoSale) {
		return nil
	} else if err != nil {
		return err
	}
	cells := make(map[string]record.Cell, len(stock.Items))
	for _, c := range stock.Items {
		cells[sale.Cell(c.SKU, c.Region)] = c
	}
	for _, d := range change.Deltas {
		c := cells[d.Cell]
		switch {
		case c.Available+d.Delta < 0:
			return deltaRefused(d, lua.Short, c.Available, 0)
		case c.Stock+d.Delta > sale.MaxUnits:
			return deltaRefused(d, lua.TooMany, c.Stock, 0)
		case d.Removed && c.Stock+d.Delta != 0:
			return deltaRefused(d, lua.InUse, c.Stock, c.Stock-c.Available)
		}
	}
	return nil
}

func deltaRefused(d sale.CellDelta, code lua.Code, n, unavailable int64) error {
	switch code {
	case lua.Short:
		if d.Removed {
			return shard.Refused("%s: the item cannot go, only %d of the %d units of the file are available: the others are held or sold, or `stock add` has taken them away; add those again first, or let the item stay in the file",
				d.Cell, n, -d.Delta)
		}
		return shard.Refused("%s: the file takes %d units away, but only %d are available", d.Cell, -d.Delta, n)
	case lua.TooMany:
		return shard.Refused("%s: %d units and %d more are beyond the bound of %d", d.Cell, n, d.Delta, int64(sale.MaxUnits))
	case lua.InUse:
		if unavailable > 0 {
			return shard.Refused("%s: the item cannot go, %d of its units are held or sold", d.Cell, unavailable)
		}
		return shard.Refused("%s: the item cannot go, %d units were added to it by `stock add`; take them away first", d.Cell, n+d.Delta)
	}
	return fmt.Errorf("%w: apply gave %q", shard.ErrUnavailable, code)
}

// SetStatus opens, pauses or closes a sale. The same status again changes nothing. The
// error wraps shard.ErrRefused if the sale cannot change to this status.
func (s *Store) SetStatus(ctx context.Context, id string, status sale.Status, by string) error {
	seen := ""
	if status == sale.Open {
		current, err := s.Load(ctx, id)
		if err != nil {
			return err
		}
		if m := current.Sale.MovedIn; m != nil && !m.Done {
			return shard.Refused("sale %s does not have all purchases that were made before it: finish that first, `caddy stockgate sale apply` with the same file", id)
		}
		seen = strconv.FormatInt(current.Version, 10)
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Status, string(status), by, seen))
	if err != nil {
		return err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		return nil
	case lua.NoSale:
		return shard.ErrNoSale
	case lua.StaleVersion:
		return shard.Refused("sale %s was changed at the same time: ask again", id)
	case lua.Conflict:
		if r.Text(1) == "merging" {
			return shard.Refused("what redis had before sale %s was rebuilt is not all merged: run `caddy stockgate rebuild %s --from ledger` again, then open it", id, id)
		}
		return shard.Refused("the sale is %s, from there it cannot become %s", r.Text(1), status)
	default:
		return fmt.Errorf("%w: status gave %q", shard.ErrUnavailable, r.Code())
	}
}

// Align ends the lead of a sale's clock of deadlines over Redis's own time. Every hold keeps
// the time that it has left. It returns the former lead, and how many holds it moved.
func (s *Store) Align(ctx context.Context, id, by string) (lead time.Duration, moved int64, err error) {
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Align, by))
	if err != nil {
		return 0, 0, err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		return r.Duration(1), r.Number(2), nil
	case lua.NoSale:
		return 0, 0, shard.ErrNoSale
	default:
		return 0, 0, fmt.Errorf("%w: align gave %q", shard.ErrUnavailable, r.Code())
	}
}

// ShortError says that fewer units of a cell are available than were to be taken out of the stock. It is a shard.ErrRefused.
type ShortError struct {
	Cell      string
	Available int64
}

func (e *ShortError) Error() string {
	return shard.Refused("%s: only %d units are available", e.Cell, e.Available).Error()
}

// Is treats the error as a refusal.
func (e *ShortError) Is(target error) bool { return target == shard.ErrRefused }

// Adjust adds units to a cell (sku or sku@region), or removes available ones. It returns
// the cell's stock afterwards. The same adjustment id again changes nothing and returns
// the same. The error wraps shard.ErrRefused if the cell does not allow the change.
func (s *Store) Adjust(ctx context.Context, id, adjustment, cell string, delta int64, by string) (int64, error) {
	if delta > sale.MaxUnits || delta < -sale.MaxUnits {
		return 0, shard.Refused("%d units are beyond the bound of %d", delta, int64(sale.MaxUnits))
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Adjust, adjustment, cell, strconv.FormatInt(delta, 10), by))
	if err != nil {
		return 0, err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		return r.Number(1), nil
	case lua.NoSale:
		return 0, shard.ErrNoSale
	case lua.KeyReused:
		return 0, shard.Refused("adjustment %s has been used for another change; give each change an id of its own", adjustment)
	case lua.Unknown:
		return 0, shard.Refused("the sale has no %s", cell)
	case lua.Short:
		return 0, &ShortError{cell, r.Number(1)}
	case lua.TooMany:
		return 0, shard.Refused("%s: %d units and %d more are beyond the bound of %d", cell, r.Number(1), delta, int64(sale.MaxUnits))
	default:
		return 0, fmt.Errorf("%w: adjust gave %q", shard.ErrUnavailable, r.Code())
	}
}

// keeps waits until the replicas have all writes so far, and reports whether the sale has
// this version then. Redis may have lost it in a failover since it was read.
func (s *Store) keeps(ctx context.Context, sale string, version int64) (bool, error) {
	if s.shard.Options.ReplicaAcks == 0 {
		return true, nil
	}
	if err := s.shard.AwaitReplicas(ctx); err != nil {
		return false, err
	}
	now, _, _, err := s.journal.SaleDocument(ctx, sale)
	if errors.Is(err, shard.ErrNoSale) {
		return false, nil
	}
	return err == nil && now == version, err
}

// RefuseAnew returns the error that refuses to load a lost sale again.
func RefuseAnew(id string) error {
	return shard.Refused("redis has lost sale %s: loading its file again would sell again what is sold. Restore it with `caddy stockgate rebuild %s --from ledger`, "+
		"or load it as a new sale, with no more stock than the shop has not sold: `caddy stockgate sale apply FILE --new`", id, id)
}
