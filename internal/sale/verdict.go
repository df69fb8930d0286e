package sale

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Refusals without details, made once: in a rush nearly every answer is one of them.
var (
	refuseClosed     = Refuse(ClosedSale)
	refuseEnded      = Refuse(Ended)
	refuseNotStarted = Refuse(NotStarted)
	refusePaused     = Refuse(PausedSale)
	refuseBroken     = Refuse(Unavailable)

	refuseNoLines  = &Refusal{Reason: Malformed, Detail: "the order has no lines"}
	refuseManyLine = &Refusal{Reason: Malformed, Detail: fmt.Sprintf("the order has more than %d lines", MaxLines)}

	refuseManyCells = &Refusal{Reason: Malformed, Detail: fmt.Sprintf("the order takes units of more than %d items, with the components of its bundles", MaxLines)}
)

// RefusalAt returns why the sale does not sell at that moment; nil: it sells. The reasons are
// checked in this order: closed, ended, not_started, paused; so a sale that is paused and
// over has ended. Only an open sale before its start has a RetryAfter, in whole seconds,
// rounded up. The refusal may be shared: copy it before you change it.
func (s *Sale) RefusalAt(status Status, now time.Time) *Refusal {
	switch {
	case status == Closed:
		return refuseClosed
	case !now.Before(s.EndsAt):
		return refuseEnded
	case status == Draft:
		return refuseNotStarted // it is not known when it will be opened
	case now.Before(s.StartsAt):
		return waitFor(secondsUntil(s.StartsAt.Sub(now)))
	case status == Paused:
		return refusePaused
	case status == Open:
		return nil
	}
	return refuseBroken // a sale with an unknown status does not sell
}

// waits caches current refusals by their seconds: all attempts within one second wait
// for the same start.
var waits [64]atomic.Pointer[Refusal]

func waitFor(seconds int64) *Refusal {
	place := &waits[seconds%int64(len(waits))]
	no := place.Load()
	if no == nil || no.RetryAfter != seconds {
		no = &Refusal{Reason: NotStarted, RetryAfter: seconds}
		place.Store(no)
	}
	return no
}

func secondsUntil(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}

// Resolve checks an attempt's lines against the items and returns the lines to reserve:
// equal lines summed, in the order of their first appearance, with a region only where
// the item has regions, and the components of a bundle in its place. A line without a
// region uses the attempt's. It changes nothing in the attempt.
//
// The refusals are unknown_item and unknown_region, in the order of the lines,
// then quantity: an item's Min and Max bound its units in the whole order; those in bundles
// do not count. A refusal names
// the SKU as the client wrote it, and costs one small allocation whatever the size of the
// attempt. It may be shared: copy it before you change it. The lines may be the attempt's
// own.
func (s *Sale) Resolve(a *Attempt) ([]Line, *Refusal) {
	switch n := len(a.Lines); {
	case n == 0:
		return nil, refuseNoLines
	case n > MaxLines:
		return nil, refuseManyLine
	}
	if len(a.Lines) > 1 {
		return s.resolveAll(a)
	}
	item, region, r := s.resolve(a, &a.Lines[0])
	if r == nil {
		r = checkQuantity([]*Item{item}, a.Lines, 0)
	}
	switch {
	case r != nil:
		return nil, r
	case item.IsBundle():
		return s.take(nil, item, a.Lines[0].Quantity, region), nil
	case a.Lines[0].Region != region || a.Lines[0].SKU != item.SKU:
		return []Line{{SKU: item.SKU, Quantity: a.Lines[0].Quantity, Region: region}}, nil
	}
	return a.Lines[:1:1], nil
}

// resolveAll resolves several lines.
func (s *Sale) resolveAll(a *Attempt) ([]Line, *Refusal) {
	var items [MaxLines]*Item
	var regions [MaxLines]string
	for i := range a.Lines {
		var r *Refusal
		if items[i], regions[i], r = s.resolve(a, &a.Lines[i]); r != nil {
			return nil, r
		}
	}
	for i := range a.Lines {
		if r := checkQuantity(items[:len(a.Lines)], a.Lines, i); r != nil {
			return nil, r
		}
	}
	lines := s.sum(items[:], a.Lines, regions[:])
	if len(lines) > MaxLines {
		return nil, refuseManyCells
	}
	return lines, nil
}

// resolve finds the item of a line, and its region where it has regions.
func (s *Sale) resolve(a *Attempt, line *Line) (item *Item, region string, r *Refusal) {
	item, ok := s.Item(line.SKU)
	if !ok {
		return nil, "", &Refusal{Reason: UnknownItem, SKU: line.SKU}
	}
	if len(item.Regions) == 0 && !item.IsBundle() {
		return item, "", nil
	}
	region = line.Region
	if region == "" {
		region = a.Region
	}
	if !s.isIn(item, region) {
		return nil, "", &Refusal{Reason: UnknownRegion, SKU: line.SKU}
	}
	return item, region, nil
}

// checkQuantity checks the units of the item that line from asks for, with all later
// lines of the same item; earlier ones have been checked with theirs.
func checkQuantity(items []*Item, lines []Line, from int) *Refusal {
	i := items[from]
	for _, earlier := range items[:from] {
		if earlier == i {
			return nil
		}
	}
	var units int64
	for at := from; at < len(lines); at++ {
		line := &lines[at]
		if items[at] != i {
			continue
		}
		if line.Quantity < 1 || line.Quantity > MaxQuantity { // so the sum cannot overflow
			return &Refusal{Reason: Quantity, SKU: i.SKU, Detail: fmt.Sprintf("one line must have 1 to %d units", MaxQuantity)}
		}
		units += line.Quantity
	}
	switch least, most := i.Bounds(); {
	case units < least:
		return &Refusal{Reason: Quantity, SKU: i.SKU, Detail: fmt.Sprintf("one order must have at least %d units of it", least)}
	case units > most:
		return &Refusal{Reason: Quantity, SKU: i.SKU, Detail: fmt.Sprintf("one order may have at most %d units of it", most)}
	}
	return nil
}

func (s *Sale) sum(items []*Item, lines []Line, regions []string) []Line {
	summed := make([]Line, 0, len(lines))
	for i, line := range lines {
		if items[i].IsBundle() {
			summed = s.take(summed, items[i], line.Quantity, regions[i])
		} else {
			summed = addLine(summed, Line{SKU: items[i].SKU, Quantity: line.Quantity, Region: regions[i]})
		}
	}
	return summed
}
