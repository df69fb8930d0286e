package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Loaded is a sale as Redis has it.
type Loaded struct {
	Sale    *sale.Sale
	Status  sale.Status
	Version int64
	Epoch   string
	// Deleted is the epoch of the last sale under this id that was deleted before; 0: none was.
	Deleted int64
}

// ErrUnreadable says that a sale's file in Redis cannot be read.
var ErrUnreadable = errors.New("a sale in redis cannot be read: a newer stockgate has written it, update this edge")

// Load reads a sale's file and status. It fails with shard.ErrNoSale if Redis does not have
// the sale, and with ErrUnreadable if its file cannot be read.
func (s *Store) Load(ctx context.Context, id string) (*Loaded, error) {
	meta, err := s.shard.Data(id).Meta(ctx, "version", "status", "doc", "epoch", "deleted")
	if err != nil {
		return nil, err
	}
	if !meta.Has(2) {
		return nil, shard.ErrNoSale
	}
	parsed, err := sale.Decode([]byte(meta.Text(2)))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnreadable, id, err)
	}
	return &Loaded{Sale: parsed, Status: sale.Status(meta.Text(1)), Version: meta.Number(0), Epoch: meta.Text(3), Deleted: meta.Number(4)}, nil
}

// SaleStock is a sale and where its units are; all cells are read at one moment.
type SaleStock struct {
	ID       string      `json:"id"`
	Status   sale.Status `json:"status"`
	StartsAt time.Time   `json:"starts_at"`
	EndsAt   time.Time   `json:"ends_at"`
	// Timezone and Limits are those of the sale's file.
	Timezone string        `json:"timezone,omitempty"`
	Limits   []sale.Limit  `json:"limits,omitempty"`
	Version  int64         `json:"version"`
	Items    []record.Cell `json:"items"`
	// Balanced says that stock = available + held + in_doubt + confirmed in every cell.
	Balanced bool `json:"balanced"`
	// OldestInDoubt is when the oldest hold in doubt became so; zero: none is in doubt.
	OldestInDoubt time.Time `json:"oldest_in_doubt,omitzero"`
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64 `json:"unbacked,omitempty"`
	// RestoredFrom is when the backup was made that the sale was restored from; zero: it was not, or its status
	// was changed since.
	RestoredFrom time.Time `json:"restored_from,omitzero"`
	// LossAccepted is when an operator let Redis go on without what its disk had lost; zero: that never was, or the
	// status of the sale was changed since.
	LossAccepted time.Time `json:"loss_accepted,omitzero"`
	// Bypassed is when a bypass ended in which the shop sold without reservations; zero: there was none, or the status
	// of the sale was changed since.
	Bypassed time.Time `json:"bypassed,omitzero"`
	// Bundles are the bundles of the sale's file, with the stock of their components.
	Bundles []BundleStock `json:"bundles,omitempty"`
	// Scheduled are the acts that are to come, by time, Performed the last ones that are done or failed, the newest
	// last.
	Scheduled []ScheduledAct `json:"scheduled,omitempty"`
	Performed []ScheduledAct `json:"performed,omitempty"`
	// MovedIn is that of the sale's file; its JSON is that of adminapi.SaleShown.
	MovedIn *sale.MovedIn `json:"-"`
}

// BundleStock is a bundle, per region where its components have regions, and how many of it there are in
// the units of its components.
type BundleStock struct {
	SKU       string `json:"sku"`
	Region    string `json:"region,omitempty"`
	Stock     int64  `json:"stock"`
	Available int64  `json:"available"`
	// Components are the units of one bundle.
	Components []sale.Line `json:"components"`
}

// Of says in words what one bundle takes.
func (b *BundleStock) Of() string {
	parts := make([]string, len(b.Components))
	for i, c := range b.Components {
		parts[i] = fmt.Sprintf("%d×%s", c.Quantity, c.SKU)
	}
	return strings.Join(parts, " ")
}

// bundles returns the stock of a file's bundles; cells are the sale's cells by name.
func bundles(file *sale.Sale, cells map[string]record.Cell) (all []BundleStock) {
	for _, b := range file.Bundles() {
		all = append(all, BundleStock{
			SKU: b.SKU, Region: b.Region, Components: b.Parts,
			Stock:     b.Of(func(cell string) int64 { return cells[cell].Stock }),
			Available: b.Of(func(cell string) int64 { return cells[cell].Available }),
		})
	}
	return all
}

// SaleStock reads a sale and its cells. It fails with shard.ErrNoSale if Redis does not
// have the sale.
func (s *Store) SaleStock(ctx context.Context, id string) (*SaleStock, error) {
	h, cells, err := s.shard.Data(id).Stock(ctx, "version", "status", "doc", "lead", "behind", "epoch", "acts", "acts_done")
	if err != nil {
		return nil, err
	}
	if !h.Meta.Has(2) {
		return nil, shard.ErrNoSale
	}
	var file sale.Sale
	if err := json.Unmarshal([]byte(h.Meta.Text(2)), &file); err != nil {
		return nil, fmt.Errorf("sale %s in redis cannot be read: %w", id, err)
	}
	b := &SaleStock{ID: id, Status: sale.Status(h.Meta.Text(1)), Version: h.Meta.Number(0), StartsAt: file.StartsAt, EndsAt: file.EndsAt, Timezone: file.Timezone, Limits: file.Limits, Balanced: true, Unbacked: h.Unbacked, MovedIn: file.MovedIn}
	if h.OldestInDoubt != 0 {
		b.OldestInDoubt = time.UnixMilli(h.OldestInDoubt - h.Meta.Number(3))
	}
	if b.Status != sale.Closed { // it sells nothing any more
		behind := h.Meta.Text(4)
		b.RestoredFrom, b.LossAccepted, b.Bypassed = behindTime(behind, fromBackup), behindTime(behind, lossAccepted), behindTime(behind, afterBypass)
	}
	names, parsed := file.Lines(), make(map[string]record.Cell, len(cells))
	for cell, packed := range cells {
		c, err := record.ParseCell(packed)
		if err != nil {
			return nil, fmt.Errorf("cell %s of sale %s: %w", cell, id, err)
		}
		if name, ok := names[cell]; ok {
			c.SKU, c.Region = name.SKU, name.Region
		} else {
			c.SKU = cell
		}
		b.Balanced = b.Balanced && c.Balanced()
		b.Items = append(b.Items, c)
		parsed[cell] = c
	}
	b.Bundles = bundles(&file, parsed)
	if b.Scheduled, b.Performed, err = readBoth(h.Meta.Text(6), h.Meta.Text(7), h.Meta.Text(5), &file); err != nil {
		return nil, err
	}
	slices.SortFunc(b.Items, func(a, c record.Cell) int {
		return strings.Compare(a.SKU+"\x00"+a.Region, c.SKU+"\x00"+c.Region)
	})
	return b, nil
}

// Lines returns the line that each cell of a sale stands for, by cell, as far as this
// edge can read the sale's file.
func (s *Store) Lines(ctx context.Context, id string) (map[string]sale.Line, error) {
	file, err := s.file(ctx, id)
	if err != nil {
		return nil, err
	}
	return file.Lines(), nil
}

// file reads a sale's file, as far as this edge can read it: for the names of cells and of bundles.
func (s *Store) file(ctx context.Context, id string) (*sale.Sale, error) {
	meta, err := s.shard.Data(id).Meta(ctx, "doc")
	if err != nil {
		return nil, err
	}
	if !meta.Has(0) {
		return nil, shard.ErrNoSale
	}
	file := new(sale.Sale)
	_ = json.Unmarshal([]byte(meta.Text(0)), file) // a cell stands for itself without
	return file, nil
}

// Record is everything about one reservation.
type Record struct {
	ID      string       `json:"id"`
	Sale    string       `json:"sale"`
	State   record.State `json:"state"`
	Cause   string       `json:"cause,omitempty"`
	Lines   []sale.Line  `json:"lines"`
	Buyer   string       `json:"buyer"` // hashed
	Mode    record.Mode  `json:"mode"`
	Created time.Time    `json:"created"`
	// Changed is when it came to its state, Deadline when a hold ends. For a hold both are
	// converted to Redis's own time.
	Changed  time.Time `json:"changed"`
	Deadline time.Time `json:"deadline"`
	Exp      time.Time `json:"token_expires"`
	// Ref is the shop's own name of the order, Gate the gate that made the
	// reservation; empty: none.
	Ref  string `json:"ref,omitempty"`
	Gate string `json:"gate,omitempty"`
	// Returned are all units that came back after it was confirmed.
	Returned []sale.Line `json:"returned,omitempty"`
	// Probes is how many times the shop was asked whether it has the order.
	Probes int `json:"probes,omitempty"`
	// More is the id of the reservation of what the shop sold beyond this one, see MoreOf. What is
	// read of one reservation has it; empty: there is none.
	More string `json:"more,omitempty"`
}

// Reservation finds a reservation in any sale. It fails with ErrNotFound if no sale has it.
func (s *Store) Reservation(ctx context.Context, id string) (*Record, error) {
	sales, err := s.journal.Sales(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range sales {
		r, err := s.one(ctx, name, id)
		if r != nil || err != nil {
			return r, err
		}
	}
	return nil, ErrNotFound
}

// one reads a reservation of one sale, with the id of that of what was sold beyond it; nil: the
// sale does not have it.
func (s *Store) one(ctx context.Context, sale, id string) (found *Record, err error) {
	records, err := s.records(ctx, sale, []string{id, MoreOf(id)})
	more := ""
	for i := range records {
		if r := &records[i]; r.ID == id {
			found = r
		} else {
			more = r.ID
		}
	}
	if found != nil {
		found.More = more
	}
	return found, err
}

// records reads reservations of one sale; unknown ids are left out.
func (s *Store) records(ctx context.Context, id string, ids []string) ([]Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	packed, meta, err := s.shard.Data(id).Records(ctx, ids, "doc", "lead")
	if err != nil {
		return nil, err
	}
	lead := time.Duration(meta.Number(1)) * time.Millisecond
	var file sale.Sale
	_ = json.Unmarshal([]byte(meta.Text(0)), &file) // names of cells only; a cell stands for itself without
	names := file.Lines()
	var out []Record
	for i, v := range packed {
		text, ok := v.(string)
		if !ok {
			continue
		}
		r, err := readRecord(text, names)
		if err != nil {
			return nil, fmt.Errorf("reservation %s of sale %s: %w", ids[i], id, err)
		}
		if r.State == record.Tombstone {
			continue
		}
		r.ID, r.Sale = ids[i], id
		if r.State == record.Held || r.State == record.InDoubt {
			r.Changed, r.Deadline = r.Changed.Add(-lead), r.Deadline.Add(-lead)
		}
		out = append(out, r)
	}
	return out, nil
}

// readRecord reads a record as lua/changes.lua writes it. A number that something else has damaged is 0:
// operators see the rest.
func readRecord(text string, names map[string]sale.Line) (Record, error) {
	r, err := record.Parse(text)
	if r == nil {
		return Record{}, err
	}
	at := func(t time.Time) time.Time { return time.UnixMilli(record.MsOf(t)) }
	tries, _, _ := strings.Cut(r.Probes, " ")
	probes, _ := strconv.Atoi(tries)
	return Record{
		State: r.State, Deadline: at(r.Deadline), Exp: at(r.Exp), Created: at(r.Created), Changed: at(r.Changed), Mode: r.Mode, Buyer: r.Buyer,
		Lines: linesOf(r.Lines, names), Cause: r.Cause, Ref: r.Ref, Gate: r.Gate, Returned: linesOf(r.Returned, names), Probes: probes,
	}, nil
}

// linesOf returns the lines of units in cells; names gives the lines that the cells stand for.
func linesOf(units []record.CellUnits, names map[string]sale.Line) []sale.Line {
	var lines []sale.Line
	for _, u := range units {
		line, ok := names[u.Cell]
		if !ok {
			line = sale.Line{SKU: u.Cell}
		}
		line.Quantity = u.Units
		lines = append(lines, line)
	}
	return lines
}

// ReservationIn finds a reservation of one sale, with one call to Redis. It fails with
// ErrNotFound if the sale does not have it.
func (s *Store) ReservationIn(ctx context.Context, sale, id string) (*Record, error) {
	found, err := s.one(ctx, sale, id)
	if found == nil && err == nil {
		return nil, fmt.Errorf("%w in sale %s: %s", ErrNotFound, sale, id)
	}
	return found, err
}
