package edge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// A sale is lost when Redis no longer has its data: Redis was emptied, came back on a new
// volume, or failed over to a replica that had nothing. The index of sales says which
// sales must exist. An edge that knows a sale missing from the index writes its name
// back, so that every other edge detects the loss too.

// StatusLost stands where the status of a lost sale would; no sale has it.
const StatusLost sale.Status = "lost"

// LostError says that Redis had a sale and no longer has it. It is a
// shard.ErrUnavailable: the state of the sale's reservations is unknown, and callers may
// repeat their requests when the sale is back.
type LostError struct{ Sale string }

func (e *LostError) Error() string {
	return fmt.Sprintf("redis has lost sale %s: restore it with `caddy stockgate rebuild %s --from ledger`; "+
		"without a ledger load it anew with `caddy stockgate sale apply FILE --new`, with no more stock than the shop has not sold", e.Sale, e.Sale)
}

// Is makes the error a shard.ErrUnavailable, as if Redis did not answer.
func (e *LostError) Is(target error) bool { return target == shard.ErrUnavailable }

// Lost reports whether Redis had the sale and no longer has it.
func (l *Listing) Lost() bool { return l.Status == StatusLost }

// lost stands for a sale that Redis must have and does not have. What it lists is still
// known to an edge that has read it before.
func lost(id string, known *Listing) *Listing {
	switch {
	case known == nil:
		return unknown(id, StatusLost)
	case known.Lost():
		return known
	}
	l := *known
	l.Status, l.Version, l.followed = StatusLost, -1, new(atomic.Pointer[followed])
	l.closed = known.Status == sale.Closed
	return &l
}

// remembered is what Redis has said, and may forget.
type remembered struct {
	mu sync.Mutex
	// ids are the sales that Redis must have.
	ids map[string]bool
	// deleted are the sales that were deleted on purpose, each with its last epoch.
	deleted map[string]int64
}

// noteDeleted remembers that the sale of an epoch was deleted on purpose.
func (r *remembered) noteDeleted(id string, epoch int64) {
	if epoch == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted == nil {
		r.deleted = make(map[string]int64)
	}
	r.deleted[id] = max(r.deleted[id], epoch)
}

// lastDeleted returns the epoch that noteDeleted has had; 0: none.
func (r *remembered) lastDeleted(id string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deleted[id]
}

func (r *remembered) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.ids))
}

// Remember adds sales that were in this Redis before the edge was started. It reports
// whether the edge had not been told of one of them; Refresh looks for them at once.
func (e *Edge) Remember(ids ...string) (news bool) {
	e.remembered.mu.Lock()
	defer e.remembered.mu.Unlock()
	if e.remembered.ids == nil {
		e.remembered.ids = make(map[string]bool)
	}
	for _, id := range ids {
		news = news || !e.remembered.ids[id]
		e.remembered.ids[id] = true
	}
	return news
}

// miss logs which sales Redis has lost and which are back, and adds to the index the
// sales that it does not name. A closed sale that has vanished as a whole is not written
// back: an operator may have deleted it.
func (e *Edge) miss(ctx context.Context, before, now *Catalogue, index []string) {
	var absent []string
	for id, l := range now.sales {
		old := before.sales[id]
		was := old != nil && old.Lost()
		_, named := slices.BinarySearch(index, id)
		switch {
		case l.Lost() && !was:
			e.log.Error("redis has lost a sale: buyers hear `unavailable`", zap.String("sale", id), zap.Error(&LostError{id}))
		case !l.Lost() && was:
			e.log.Info("redis has the sale again", zap.String("sale", id))
		case !l.Lost() && !named:
			e.log.Warn("the index of sales in redis did not name a sale that is there: its name is written back", zap.String("sale", id))
		}
		if !named && !l.closed {
			absent = append(absent, id)
		}
	}
	if err := e.Store.Journal().Announce(ctx, absent...); err != nil { // a full Redis refuses it: tried again at the next look
		e.log.Debug("the index of sales cannot be written", zap.Strings("sales", absent), zap.Error(err))
	}
}

// Missing interprets an error that says that Redis has no such reservation or sale. It
// reads the sales again first, because Redis may have been emptied a moment ago. It
// returns err, or instead:
//
//   - a *LostError if the sale is lost
//   - without a sale id, a *LostError or reservation.ErrUnreadable if the reservation may
//     be in a sale that is lost or cannot be read
func (e *Edge) Missing(ctx context.Context, saleID string, err error) error {
	if !errors.Is(err, reservation.ErrNotFound) && !errors.Is(err, shard.ErrNoSale) {
		return err
	}
	if e := e.Refresh(ctx); e != nil {
		return e
	}
	c := e.Catalogue()
	if saleID != "" {
		if l, ok := c.sales[saleID]; ok && l.Lost() {
			return &LostError{saleID}
		}
		return err
	}
	for id, l := range c.sales {
		switch l.Status {
		case StatusLost:
			return &LostError{id}
		case statusUnreadable:
			return fmt.Errorf("%w: sale %s", reservation.ErrUnreadable, id)
		}
	}
	return err
}

// Gone returns nil if a reservation that was there, and that Redis does not have, is known to be gone:
// its sale is there, or was deleted. Otherwise the error is a shard.ErrUnavailable: the sale is lost,
// or this edge does not know it yet.
func (e *Edge) Gone(ctx context.Context, saleID string) error {
	if l, ok := e.Catalogue().sales[saleID]; ok && l.Lost() { // many ask while it is
		return &LostError{saleID}
	}
	if err := e.Missing(ctx, saleID, reservation.ErrNotFound); !errors.Is(err, reservation.ErrNotFound) {
		return err
	}
	switch l, ok := e.Catalogue().sales[saleID]; {
	case ok && l.Status == statusUnreadable:
		return fmt.Errorf("%w: sale %s", reservation.ErrUnreadable, saleID)
	case ok:
		return nil
	}
	epoch, err := e.Store.Journal().DeletedEpoch(ctx, saleID)
	if err == nil && epoch == 0 {
		err = fmt.Errorf("%w: this edge does not know sale %s yet", shard.ErrUnavailable, saleID)
	}
	return err
}

// ApplyUnlessLost is Store.Apply, but refuses a sale that this edge remembers and Redis
// has lost: loading it again would sell units that are sold. The error is then that of
// reservation.RefuseAnew.
func (e *Edge) ApplyUnlessLost(ctx context.Context, next *sale.Sale, o reservation.ApplyOptions) (*reservation.Applied, error) {
	if _, ok := e.Catalogue().Sale(next.ID); ok && !o.New {
		err := e.Refresh(ctx) // it may be lost, or back, since a moment ago
		if _, few := errors.AsType[shard.FewReplicas](err); err != nil && !few {
			return nil, err
		}
		if l, ok := e.Catalogue().Sale(next.ID); ok && l.Lost() {
			return nil, reservation.RefuseAnew(next.ID)
		}
	}
	o.Deleted = max(o.Deleted, e.remembered.lastDeleted(next.ID))
	return e.Store.Apply(ctx, next, o)
}
