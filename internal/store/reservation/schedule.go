package reservation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// PlannedAct is an act that is to be scheduled.
type PlannedAct struct {
	// At is a time as the sale's file has it, or without an offset in the time zone of the sale.
	At string `json:"at"`
	// Act is open, pause, resume, close or stock.
	Act string `json:"act"`
	// SKU is the item of stock, by its SKU or one of its ids. Region is empty where its stock has none.
	SKU    string `json:"sku,omitempty"`
	Region string `json:"region,omitempty"`
	// Change is of stock: +50, -5, or =40 for what it becomes.
	Change string `json:"change,omitempty"`
}

// planned is a PlannedAct that was checked.
type planned struct {
	at      time.Time
	kind    sale.ActKind
	cell    string
	change  string
	warning string
}

// ActError says what is wrong with a PlannedAct.
type ActError struct{ error }

func (e *ActError) Unwrap() error { return e.error }

func actError(format string, args ...any) error { return &ActError{fmt.Errorf(format, args...)} }

// check checks an act by the sale's file.
func (p *PlannedAct) check(file *sale.Sale) (*planned, error) {
	kind, err := sale.ParseActKind(p.Act)
	if err != nil {
		return nil, &ActError{err}
	}
	at, err := file.ParseTime(p.At)
	if err != nil {
		return nil, actError("the time %w", err)
	}
	out := &planned{at: at, kind: kind}
	switch {
	case kind == sale.ActStock:
		if out.cell, out.change, err = p.stock(file); err != nil {
			return nil, err
		}
	case p.SKU != "" || p.Region != "" || p.Change != "":
		return nil, actError("%s takes no item: give sku, region and change to stock only", kind)
	}
	ends := file.EndsAt.In(at.Location()).Format(time.RFC3339)
	switch {
	case kind != sale.ActClose && !at.Before(file.EndsAt):
		return nil, shard.Refused("the sale has ended by then, at %s: move its `ends_at`, or choose an earlier time", ends)
	case kind == sale.ActClose && !at.After(file.StartsAt):
		out.warning = "it closes the sale for good before the sale starts"
	case kind == sale.ActClose && at.Before(file.EndsAt):
		out.warning = "it closes the sale for good before it ends, at " + ends
	case (kind == sale.ActOpen || kind == sale.ActResume) && at.Before(file.StartsAt):
		out.warning = "nothing is sold before the sale starts, at " + file.StartsAt.In(at.Location()).Format(time.RFC3339)
	}
	return out, nil
}

// stock checks the item and the change of its stock.
func (p *PlannedAct) stock(file *sale.Sale) (cell, change string, err error) {
	item, ok := file.Item(p.SKU)
	switch {
	case p.SKU == "":
		return "", "", actError("stock needs an item: give its sku")
	case !ok:
		return "", "", actError("the sale has no item %q", p.SKU)
	case item.IsBundle():
		return "", "", actError("%s is a bundle and has no stock of its own: change the stock of its components", item.SKU)
	case p.Region == "" && len(item.Regions) > 0:
		return "", "", actError("the stock of %s is split by region: name one", item.SKU)
	case p.Region != "" && len(item.Regions) == 0:
		return "", "", actError("the stock of %s is not split by region: leave the region out", item.SKU)
	}
	if _, ok := item.Regions[p.Region]; !ok && p.Region != "" {
		return "", "", actError("the stock of %s has no region %q", item.SKU, p.Region)
	}
	if change, err = sale.ParseUnitChange(p.Change); err != nil {
		return "", "", &ActError{err}
	}
	return sale.Cell(item.SKU, p.Region), change, nil
}

// Schedule plans an act of a sale. new is false where it was planned already. The error is an ActError where
// the act is wrong, and wraps shard.ErrRefused if the sale does not allow it. warning says what is probably not
// meant.
func (s *Store) Schedule(ctx context.Context, id string, act PlannedAct, by string) (done *ScheduledAct, isNew bool, warning string, err error) {
	for range 10 {
		current, err := s.Load(ctx, id)
		if err != nil {
			return nil, false, "", err
		}
		p, err := act.check(current.Sale)
		if err != nil {
			return nil, false, "", err
		}
		replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Schedule, current.Version, p.at.UnixMilli(), string(p.kind), p.cell, p.change, by))
		if err != nil {
			return nil, false, "", err
		}
		r := replies[0]
		switch r.Code() {
		case lua.StaleVersion:
			continue // the file has changed since it was read
		case lua.OK:
			line, _ := current.Sale.LineOf(p.cell)
			return &ScheduledAct{Number: r.Number(1), At: p.at, Act: p.kind, SKU: line.SKU, Region: line.Region, Change: p.change, By: by}, r.Number(2) == 1, p.warning, nil
		}
		return nil, false, "", scheduleRefused(id, p, r)
	}
	return nil, false, "", shard.Refused("the sale is being changed by others all the time; try again")
}

func scheduleRefused(id string, p *planned, r shard.Reply) error {
	switch r.Code() {
	case lua.NoSale:
		return shard.ErrNoSale
	case lua.Conflict:
		return shard.Refused("sale %s is %s: nothing is done to it any more", id, r.Text(1))
	case lua.Late:
		return actError("%s has passed: it is %s by redis's clock", p.at.Format(time.RFC3339), record.TimeOf(r.Number(1)).In(p.at.Location()).Format(time.RFC3339))
	case lua.TooMany:
		return shard.Refused("sale %s has %d acts that are to come, which is the most: cancel some", id, r.Number(1))
	case lua.Unknown:
		return shard.Refused("the sale has no %s", p.cell)
	}
	return fmt.Errorf("%w: schedule gave %q", shard.ErrUnavailable, r.Code())
}

// CancelAct takes an act back that is to come, or forgets one that failed. The error wraps shard.ErrRefused if
// it is done, and ErrNotFound if there is none.
func (s *Store) CancelAct(ctx context.Context, id string, number int64) (*ScheduledAct, error) {
	file, err := s.file(ctx, id)
	if err != nil {
		return nil, err
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Cancel, number))
	if err != nil {
		return nil, err
	}
	r := replies[0]
	var act ScheduledAct
	if r.Code() == lua.OK || r.Code() == lua.Conflict {
		if act, err = readAct(r.Text(1), "", file); err != nil {
			return nil, err
		}
	}
	switch r.Code() {
	case lua.OK:
		return &act, nil
	case lua.Conflict:
		return nil, shard.Refused("act %d of sale %s is done: it was done at %s", number, id, act.DoneAt.UTC().Format(time.RFC3339))
	case lua.NotFound:
		return nil, fmt.Errorf("%w: sale %s has no act %d", ErrNotFound, id, number)
	case lua.NoSale:
		return nil, shard.ErrNoSale
	}
	return nil, fmt.Errorf("%w: cancel gave %q", shard.ErrUnavailable, r.Code())
}

// Perform does the acts of a sale that are due, and returns them. current is the sale as the caller knows it. next
// is when the next one is due; zero: none is to come.
func (s *Store) Perform(ctx context.Context, current *Loaded) (done []ScheduledAct, next time.Time, err error) {
	id := current.Sale.ID
	for range 10 {
		unready := 0
		if m := current.Sale.MovedIn; m != nil && !m.Done {
			unready = 1
		}
		replies, err := s.shard.Run(ctx, id, shard.Op(lua.Perform, current.Version, unready))
		if err != nil {
			return nil, next, err
		}
		switch r := replies[0]; r.Code() {
		case lua.StaleVersion:
			if current, err = s.Load(ctx, id); err != nil {
				return nil, next, err
			}
		case lua.NoSale:
			return nil, next, shard.ErrNoSale
		case lua.OK:
			for i := 2; i < len(r); i++ {
				act, err := readAct(r.Text(i), "", current.Sale)
				if err != nil {
					return nil, next, err
				}
				done = append(done, act)
			}
			return done, record.TimeOf(r.Number(1)), nil
		default:
			return nil, next, fmt.Errorf("%w: perform gave %q", shard.ErrUnavailable, r.Code())
		}
	}
	return nil, next, errors.New("the sale is being changed by others all the time")
}

// Acts reads the acts of a sale that are to come, by time, and the last ones that are done or failed, the
// newest last. file has the names of its items.
func (s *Store) Acts(ctx context.Context, file *sale.Sale) (coming, done []ScheduledAct, err error) {
	meta, err := s.shard.Data(file.ID).Meta(ctx, "epoch", "acts", "acts_done")
	if err != nil {
		return nil, nil, err
	}
	return readBoth(meta.Text(1), meta.Text(2), meta.Text(0), file)
}

func readBoth(acts, actsDone, epoch string, file *sale.Sale) (coming, done []ScheduledAct, err error) {
	if coming, err = readActs(acts, epoch, file); err != nil {
		return nil, nil, err
	}
	done, err = readActs(actsDone, epoch, file)
	return coming, done, err
}

// readActs reads lines as lua/acts.lua writes them.
func readActs(text, epoch string, file *sale.Sale) (all []ScheduledAct, err error) {
	for line := range strings.Lines(text) {
		act, err := readAct(strings.TrimSuffix(line, "\n"), epoch, file)
		if err != nil {
			return nil, err
		}
		all = append(all, act)
	}
	return all, nil
}

func readAct(line, epoch string, file *sale.Sale) (a ScheduledAct, err error) {
	f := strings.Split(line, "\t")
	if len(f) < 9 {
		return a, fmt.Errorf("an act in redis cannot be read: %q", line)
	}
	ms := func(text string) time.Time {
		n, _ := strconv.ParseInt(text, 10, 64)
		return record.TimeOf(n)
	}
	a = ScheduledAct{At: ms(f[1]), Act: sale.ActKind(f[2]), SKU: f[3], Change: f[4], By: f[6], Planned: ms(f[7])}
	a.Number, _ = strconv.ParseInt(f[0], 10, 64)
	if line, ok := file.LineOf(f[3]); ok {
		a.SKU, a.Region = line.SKU, line.Region
	}
	if len(f) < 12 {
		a.Stale = epoch != "" && f[5] != epoch
		return a, nil
	}
	a.DoneAt, a.Failed, a.Detail = ms(f[8]), f[9] == "failed", detailOf(f[10])
	return a, nil
}
