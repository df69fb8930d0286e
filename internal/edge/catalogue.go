package edge

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/sale/skus"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Listing is a sale as an edge knows it.
type Listing struct {
	Sale    *sale.Sale
	Status  sale.Status
	Version int64
	// closed: it is lost, and was closed before.
	closed bool
	epoch  string
	clock  *shard.Clock
	// followed is what this edge knows from the sale's journal; nil: nothing is certain.
	// All versions of a sale share it.
	followed *atomic.Pointer[followed]
}

// IsFollowed reports whether the edge knows the sale's stock from its journal. Otherwise it asks
// Redis about every attempt.
func (l *Listing) IsFollowed() bool { return l.view() != nil }

// Now is the edge's estimate of the time of the sale's Redis.
func (l *Listing) Now() time.Time { return l.at(time.Now()) }

// at is Now at a moment of this machine's clock.
func (l *Listing) at(moment time.Time) time.Time {
	ms, ok := l.clock.At(moment)
	if !ok {
		return moment
	}
	return time.UnixMilli(ms)
}

// IsLive reports whether the sale is no draft and not over, and IsOnSale whether edges sell it now.
func (l *Listing) IsLive() bool {
	return (l.Status == sale.Open || l.Status == sale.Paused) && l.Now().Before(l.Sale.EndsAt)
}

func (l *Listing) IsOnSale() bool {
	return l.IsLive() && l.Status == sale.Open && !l.Now().Before(l.Sale.StartsAt)
}

// Catalogue is an edge's view of all sales at one moment. It never changes: a
// newer one takes its place.
type Catalogue struct {
	sales map[string]*Listing
	// byStart are the sales in the order of their start. Their items are numbered through:
	// those of each sale begin at its first.
	byStart []*Listing
	first   []uint32
	items   *skus.Index
	shared  map[string][]*Listing // names of items that several sales list
	partial bool                  // what some sale lists is not known
	cleared bool                  // there are no sales, because the last one was deleted
}

// Sale returns the sale with an id.
func (c *Catalogue) Sale(id string) (*Listing, bool) {
	l, ok := c.sales[id]
	return l, ok
}

// Listing returns the sales that list an item under this name, its SKU or an id, in the order
// of their start. The result must not be changed.
func (c *Catalogue) Listing(name string) []*Listing {
	if len(c.shared) > 0 {
		if all, ok := c.shared[name]; ok {
			return all
		}
	}
	if i, ok := c.find(name); ok {
		return c.byStart[i : i+1 : i+1]
	}
	return nil
}

// find returns the index in byStart of the first sale that lists an item under this name.
func (c *Catalogue) find(name string) (int, bool) {
	for at := c.items.Find(name); ; {
		n, ok := c.items.Next(&at)
		if !ok {
			return 0, false
		}
		next, _ := slices.BinarySearch(c.first, n+1) // the first sale whose items come after it
		if i := next - 1; c.byStart[i].Sale.Items[n-c.first[i]].IsCalled(name) {
			return i, true
		}
	}
}

// All calls yield for every sale, in the order of their start.
func (c *Catalogue) All(yield func(*Listing) bool) {
	for _, l := range c.byStart {
		if !yield(l) {
			return
		}
	}
}

// unfinished are the sales, with their epochs, that may be sold at a moment of this machine's clock,
// or later.
func (c *Catalogue) unfinished(moment time.Time) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for id, l := range c.sales {
			switch l.Status {
			case sale.Draft, sale.Open, sale.Paused:
				if l.at(moment).Before(l.Sale.EndsAt) && !yield(id, numberOf(l.epoch)) {
					return
				}
			}
		}
	}
}

// Complete reports whether this edge knows what every sale lists. Only then is an item
// that no listing names certain not to be on sale.
func (c *Catalogue) Complete() bool { return !c.partial }

// Cleared reports whether the catalogue is empty because sales were deleted. Otherwise an empty
// catalogue may be that of a Redis that has lost everything.
func (c *Catalogue) Cleared() bool { return c.cleared }

func newCatalogue(sales map[string]*Listing) *Catalogue {
	c := &Catalogue{sales: sales, byStart: slices.SortedFunc(maps.Values(sales), before), first: make([]uint32, len(sales)), shared: make(map[string][]*Listing)}
	n, names := uint32(0), 0
	for i, l := range c.byStart {
		c.first[i] = n
		n += uint32(len(l.Sale.Items))
		for j := range l.Sale.Items {
			names += 1 + len(l.Sale.Items[j].IDs)
		}
		c.partial = c.partial || len(l.Sale.Items) == 0
	}
	c.items = skus.New(names)
	for i, l := range c.byStart {
		for j := range l.Sale.Items {
			for name := range l.Sale.Items[j].Names {
				if k, ok := c.find(name); ok {
					if c.shared[name] == nil {
						c.shared[name] = []*Listing{c.byStart[k]}
					}
					c.shared[name] = append(c.shared[name], l)
					continue
				}
				c.items.Add(name, c.first[i]+uint32(j))
			}
		}
	}
	return c
}

func before(a, b *Listing) int {
	return cmp.Or(a.Sale.StartsAt.Compare(b.Sale.StartsAt), strings.Compare(a.Sale.ID, b.Sale.ID))
}

// readCatalogue reads all sales, keeping those of old whose version still holds. Redis
// must have every sale of its index, of old and of remembered: one that it does not have
// is listed as lost. index is what the index itself names.
func (e *Edge) readCatalogue(ctx context.Context, old *Catalogue, remembered []string) (c *Catalogue, index []string, err error) {
	index, err = e.Store.Journal().Sales(ctx)
	if err != nil {
		return nil, nil, err
	}
	expected := slices.Concat(index, slices.Collect(maps.Keys(old.sales)), remembered)
	slices.Sort(expected)
	expected = slices.Compact(expected)
	sales := make(map[string]*Listing, len(expected))
	deleted := sync.OnceValues(func() (map[string]string, error) { return e.Store.Journal().Deleted(ctx) })
	changed := false
	listings, err := e.readListings(ctx, old, expected)
	if err != nil {
		return nil, nil, err
	}
	for i, id := range expected {
		known, l := old.sales[id], listings[i]
		if l.Lost() {
			gone, err := deleted()
			if err != nil {
				return nil, nil, err
			}
			if epoch := gone[id]; epoch != "" && (known == nil || numberOf(known.epoch) <= numberOf(epoch)) {
				if known != nil {
					changed = true
					e.leases.Deleted(id)
					e.remembered.noteDeleted(id, numberOf(epoch))
				}
				continue
			}
		}
		changed = changed || l != known
		sales[id] = l
	}
	cleared := false
	if len(sales) == 0 {
		gone, err := deleted()
		if err != nil {
			return nil, nil, err
		}
		cleared = len(gone) > 0
	}
	if !changed && cleared == old.cleared {
		return old, index, nil
	}
	c = newCatalogue(sales)
	c.cleared = cleared
	return c, index, nil
}

// listed is what the catalogue lists for a sale after it was read.
func listed(id string, known, l *Listing, err error) (*Listing, error) {
	switch {
	case errors.Is(err, shard.ErrNoSale): // the index names a sale only after its shard is there
		return lost(id, known), nil
	case errors.Is(err, reservation.ErrUnreadable):
		return unreadable(id, known), nil
	}
	return l, err
}

// unreadable stands for a sale whose file in Redis this edge cannot read: its
// attempts are unavailable, those of other sales are not.
func unreadable(id string, known *Listing) *Listing {
	if known != nil && known.Status == statusUnreadable {
		return known
	}
	return unknown(id, statusUnreadable)
}

// unknown stands for a sale of which this edge knows nothing but the name.
func unknown(id string, status sale.Status) *Listing {
	file := &sale.Sale{ID: id, EndsAt: time.Unix(1<<40, 0)} // it has not ended
	return &Listing{Sale: file, Status: status, Version: -1, clock: &shard.Clock{Mono: time.Now}, followed: new(atomic.Pointer[followed])}
}

// statusUnreadable marks a sale whose file cannot be read; no sale in Redis has it. The
// refusal of its attempts is unavailable.
const statusUnreadable sale.Status = "unreadable"

// readListing reads one sale; known is returned when its version still holds.
func (e *Edge) readListing(ctx context.Context, id string, known *Listing) (*Listing, error) {
	if known != nil {
		// the epoch too: in another life the sale's versions start over
		meta, err := e.shard.Data(id).Meta(ctx, "version", "epoch", "fence", "next_act")
		if err != nil {
			return nil, err
		}
		e.upcoming.note(id, meta.Number(3))
		if meta.Has(2) {
			e.leases.Fenced(id) // also edges that sell nothing now say what they know
		}
		if meta.Text(0) == strconv.FormatInt(known.Version, 10) && meta.Text(1) == known.epoch {
			return known, nil
		}
	}
	return e.loadListing(ctx, id, known)
}

// loadListing reads one sale again. It is followed as known is, another version of it.
func (e *Edge) loadListing(ctx context.Context, id string, known *Listing) (*Listing, error) {
	loaded, err := e.Store.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	e.remembered.noteDeleted(id, loaded.Deleted)
	c := e.shard.Clock(id)
	if _, ok := c.Now(); !ok {
		if err := e.shard.ReadTime(ctx, id); err != nil {
			return nil, err
		}
	}
	view := new(atomic.Pointer[followed])
	if known != nil && known.epoch == loaded.Epoch {
		view = known.followed
	} else {
		c.Anew(numberOf(loaded.Epoch)) // another life counts its entries from the beginning
	}
	return &Listing{Sale: loaded.Sale, Status: loaded.Status, Version: loaded.Version, epoch: loaded.Epoch, clock: c, followed: view}, nil
}

// view returns what the edge knows from the sale's journal now; nil: nothing is certain.
func (l *Listing) view() *followed {
	if l.followed == nil {
		return nil
	}
	return l.followed.Load()
}

// RefusalAt returns why the sale does not sell at a moment; nil: it sells. The moment is
// one of this machine's clock, and is converted to the clock of the sale's Redis.
func (l *Listing) RefusalAt(moment time.Time) *sale.Refusal {
	if l.Lost() {
		return reservation.RefuseLost // also before its start and after its end
	}
	return l.Sale.RefusalAt(l.Status, l.at(moment))
}

// Resolve checks an attempt's lines against the sale's items.
func (l *Listing) Resolve(a *sale.Attempt) ([]sale.Line, *sale.Refusal) { return l.Sale.Resolve(a) }
