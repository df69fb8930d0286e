package reservation_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
)

// wire gives an operation of the model the form in which the scripts take it.
func wire(op model.Operation) reservation.Operation {
	switch o := op.(type) {
	case model.Reserve:
		ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		claim := &reservation.ReserveRequest{
			ID: o.ID, Version: o.Version, Buyer: o.Buyer, HoldFor: ms(o.HoldFor), Margin: ms(o.Margin), Mode: record.Mode(o.Mode),
			Binding: reservation.Binding{Field: o.Guard, Print: o.Print, TTL: ms(o.KeyTTL)}, Ref: o.Ref, RefShared: o.Shared, Gate: o.Gate,
		}
		for _, l := range o.Lines {
			claim.Lines = append(claim.Lines, sale.Line{SKU: l.Cell, Quantity: l.Units})
		}
		for _, l := range o.Limits {
			claim.Charges = append(claim.Charges, reservation.Charge{Limit: &sale.Limit{Max: l.Max}, Field: l.Field, Amount: l.Amount, From: l.From, To: l.To})
		}
		if u := o.Unpaid; len(u.Fields) > 0 {
			claim.Unpaid = reservation.Owed{Fields: u.Fields, AtOnce: u.AtOnce, Ended: u.Ended, Within: ms(u.Within)}
		}
		if w := o.Waits; w != nil {
			claim.Queue = &reservation.QueueOptions{
				Pace: reservation.Pace{AtOnce: w.AtOnce}, Most: 1000, Memory: 1 << 20, Longest: ms(w.Longest), Edge: w.Edge, Gate: w.Gate, Order: []byte(w.Packed),
			}
		}
		return reservation.Operation{Claim: claim, Told: o.Told, NotAfter: o.NotAfter}
	case model.Adjust:
		return reservation.Operation{Name: "adjust", Args: []any{o.ID, o.Cell, o.Delta, o.Cause}}
	case model.Apply:
		args := []any{o.Version, o.Doc, o.Starts, o.Ends, o.Cause, o.Deleted, len(o.Deltas)}
		for _, d := range o.Deltas {
			args = append(args, d.Cell, d.Units, oneIf(d.Removed))
		}
		return reservation.Operation{Name: "apply", Args: args}
	case model.Align:
		return reservation.Operation{Name: "align", Args: []any{o.Cause}}
	case model.Lapse:
		return reservation.Operation{Name: "lapse", Args: []any{"0", 1000, o.Within}}
	case model.SetStatus:
		return reservation.Operation{Name: "status", Args: []any{o.Status, o.Cause}}
	case model.Confirm:
		e := o.Evidence
		if e == nil {
			return reservation.Operation{Name: "confirm", Args: []any{o.ID, o.Word, o.Cause, ""}}
		}
		args := wireLines([]any{o.ID, o.Word, o.Cause, e.Epoch, e.Buyer, e.Created, e.Exp, e.Ref, e.Mode}, e.Lines)
		args = append(args, len(e.Charges))
		for _, c := range e.Charges {
			args = append(args, c.Field, c.Amount)
		}
		return reservation.Operation{Name: "confirm", Args: args}
	case model.Release:
		return reservation.Operation{Name: "release", Args: []any{o.ID, o.Word, o.NotAfter, o.Cause}}
	case model.Doubt:
		return reservation.Operation{Name: "doubt", Args: []any{o.ID, o.Cause}}
	case model.Expire:
		return reservation.Operation{Name: "expire", Args: []any{o.Most, oneIf(o.Stepped)}}
	case model.Forget:
		return reservation.Operation{Name: "forget", Args: []any{"0", 10_000, o.Ended, o.Overdue, o.Patience}}
	case model.Acknowledge:
		return reservation.Operation{Name: "acknowledge", Args: []any{o.Epoch, o.Seq}}
	case model.Lookup:
		return reservation.Operation{Name: "lookup", Args: []any{o.Guard, o.Print, o.Ref, o.Buyer, model.Words(o.Lines), oneIf(o.Shared)}}
	case model.Free:
		return reservation.Operation{Name: "free", Args: []any{o.ID}}
	case model.Extend:
		return reservation.Operation{Name: "extend", Args: []any{o.ID, o.HoldFor, o.Longest}}
	case model.Return:
		return reservation.Operation{Name: "return", Args: wireLines([]any{o.ID, o.Return, oneIf(o.Restock), o.Cause}, o.Lines)}
	case model.Swap:
		claim := wire(o.New)
		return reservation.Operation{Name: "swap", Args: claim.Claim.SwapArgs(o.Old, o.Identities, claim.NotAfter, claim.Told)}
	case model.Enter:
		var most any = o.Most
		if o.Told {
			most = "told"
		}
		return reservation.Operation{Name: "enter", Args: []any{o.Cell, o.Units, most, o.Buyer, o.Identities}}
	case model.Offer:
		o.Of.Mode = string(record.ModeOffer)
		claim := wire(o.Of)
		return reservation.Operation{Name: "offer", Args: claim.Claim.OfferArgs(o.Number, claim.NotAfter, claim.Told)}
	case model.Accept:
		claim := wire(o.New)
		return reservation.Operation{Name: "accept", Args: claim.Claim.AcceptArgs(o.Identities, claim.NotAfter, claim.Told)}
	case model.Offers:
		does := "resume"
		if o.Pause {
			does = "pause"
		}
		return reservation.Operation{Name: "offers", Args: []any{does, o.Cause}}
	case model.Withdraw:
		var number any = o.Number
		if o.Number == 0 {
			number = ""
		}
		return reservation.Operation{Name: "withdraw", Args: []any{number, o.Buyer, o.Cause}}
	case model.Sold:
		args := wireLines([]any{o.ID, o.Word, o.Cause, o.More}, o.Lines)
		args = append(args, len(o.Charges))
		for _, c := range o.Charges {
			args = append(args, c.Field, c.Amount)
		}
		return reservation.Operation{Name: "sold", Args: args}
	case model.Turn:
		return reservation.Operation{Name: "turn", Args: []any{o.Edge, o.Lease, 0, 1, o.AtOnce, o.Most, o.Gates}}
	case model.Send:
		var try any = o.Try
		if o.Told {
			try = "told"
		}
		return reservation.Operation{Name: "send", Args: []any{o.ID, o.Edge, try, o.Mode, o.HoldFor, o.Margin}}
	case model.Again:
		return reservation.Operation{Name: "again", Args: []any{o.ID, o.Edge, o.Try, o.Longest, o.Margin, o.Gate, o.Packed, o.Later, o.Most}}
	case model.Yield:
		args := []any{o.ID, o.Edge, o.Try}
		if o.Packed != "" {
			args = append(args, o.Packed, o.Longest, o.Margin)
		} else if o.Behind > 0 || o.Open {
			args = append(args, "", 0, 0, "", o.Behind, oneIf(o.Open))
		}
		return reservation.Operation{Name: "yield", Args: args}
	case model.Leave:
		return reservation.Operation{Name: "leave", Args: []any{o.ID, o.Cause}}
	case model.Rejoin:
		return reservation.Operation{Name: "rejoin", Args: []any{o.ID, o.Edge, o.Gate, o.Packed}}
	case model.Orphans:
		return reservation.Operation{Name: "orphans", Args: []any{"0", 1000, o.Age}}
	case model.Stands:
		return reservation.Operation{Name: "place", Args: []any{o.ID}}
	case model.Look:
		return reservation.Operation{Name: "line", Args: []any{o.Does, o.Most, o.Cause}}
	case model.Probe:
		return reservation.Operation{Name: "probe", Args: []any{o.Gate, o.Most, o.Offset, o.Wait, o.Tries, o.LongestWait, cmp.Or(o.Claims, o.Most)}}
	case model.Probed:
		return reservation.Operation{Name: "probed", Args: []any{o.ID, o.Verdict, o.Cause}}
	}
	panic(fmt.Sprintf("%T has no form", op))
}

// wireLines appends lines with their number ahead.
func wireLines(args []any, lines []model.Line) []any {
	args = append(args, len(lines))
	for _, l := range lines {
		args = append(args, l.Cell, l.Units)
	}
	return args
}

// oneIf is a yes or no as the scripts take it.
func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
