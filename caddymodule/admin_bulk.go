package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/reservation"
)

const (
	// bulkMost is how many reservations one request resolves at most; next says that
	// there may be others.
	bulkMost = 500
	// bulkBody bounds its body in bytes: that many names of 128 bytes.
	bulkBody = 80 << 10
)

// bulkRequest asks for POST sales/{id}/holds/confirm and release: which holds, either
// by names or by what they have in common.
type bulkRequest struct {
	// Names are reservation ids or refs of the shop; only confirm takes them.
	Names []string `json:"names"`
	// State, Cause and Older are those of the list. All is needed where neither a cause
	// nor an age is given.
	State string `json:"state"`
	Cause string `json:"cause"`
	Older string `json:"older"`
	All   bool   `json:"all"`
	// Force releases before the deadline.
	Force bool `json:"force"`
	// DryRun only says what would happen.
	DryRun bool `json:"dry_run"`
	// After is what the last answer gave as next.
	After string `json:"after"`
}

// bulkAnswer is what became of them.
type bulkAnswer struct {
	DryRun  bool `json:"dry_run,omitempty"`
	Matched int  `json:"matched"`
	// Changed were confirmed or released by this request, FromInDoubt of them in doubt
	// before; Already were so before it.
	Changed     int `json:"changed"`
	FromInDoubt int `json:"from_in_doubt"`
	Already     int `json:"already"`
	// The others, by their ids or names. Late ones, in a dry run, have given their
	// units back: they are confirmed if those are still there.
	NotFound []string `json:"not_found,omitempty"`
	// Ambiguous are refs by which reservations of several buyers go: nothing was done to
	// them. Name the right reservation by its id.
	Ambiguous    []ambiguousRef `json:"ambiguous,omitempty"`
	TooSoon      []string       `json:"too_soon,omitempty"`
	Conflict     []string       `json:"conflict,omitempty"`
	RefundNeeded []string       `json:"refund_needed,omitempty"`
	Late         []string       `json:"late,omitempty"`
	// InDoubt is how many are in doubt in the sale now.
	InDoubt int64 `json:"in_doubt"`
	// Next is where the next request goes on; empty: nothing is left.
	Next string `json:"next,omitempty"`
}

// ambiguousRef is a ref with the reservations that go by it.
type ambiguousRef struct {
	Ref          string               `json:"ref"`
	Reservations []reservation.Record `json:"reservations"`
	// More: there are others, which are found by their ids alone.
	More bool `json:"more,omitempty"`
}

func (o *operator) confirmHolds(r *http.Request) (any, error) {
	return o.bulk(r, reservation.Confirmed)
}

func (o *operator) releaseHolds(r *http.Request) (any, error) {
	return o.bulk(r, reservation.Released)
}

func (o *operator) bulk(r *http.Request, to reservation.State) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	id, err := readSaleID(r)
	if err != nil {
		return nil, err
	}
	var ask bulkRequest
	if err := readJSON(r, bulkBody, &ask); err != nil {
		return nil, err
	}
	filter, err := ask.check(to)
	if err != nil {
		return nil, err
	}
	if err := o.known(id); err != nil {
		return nil, err
	}
	answer := &bulkAnswer{DryRun: ask.DryRun}
	found, err := o.bulkFind(id, &ask, filter, answer)
	if err != nil {
		return nil, err
	}
	err = o.bulkResolve(id, found, &ask, to, answer)
	if err == nil && !ask.DryRun { // what an earlier request did is found done
		err = o.desk.AwaitReplicas(o.ctx)
	}
	if err == nil {
		answer.InDoubt, err = o.desk.CountHolds(o.ctx, id, reservation.InDoubt)
	}
	return answer, err
}

// check says whether it is clear what is meant: nobody resolves everything by a slip.
func (b *bulkRequest) check(to reservation.State) (f reservation.HoldFilter, err error) {
	chosen := b.State != "" || b.Cause != "" || b.Older != "" || b.All || b.After != ""
	switch {
	case b.Force && to != reservation.Released:
		return f, badInput("force goes with a release only")
	case b.Names != nil && to != reservation.Confirmed:
		return f, badInput("names go with a confirmation only")
	case b.Names != nil && chosen:
		return f, badInput("names stand alone: state, cause, older, all and after do not go with them")
	case b.Names != nil && (len(b.Names) == 0 || len(b.Names) > bulkMost):
		return f, badInput("names must be 1 to %d", bulkMost)
	case b.Names == nil && b.Cause == "" && b.Older == "" && !b.All:
		return f, badInput("which holds? Give cause or older, or all")
	}
	for _, name := range b.Names {
		if _, err := readWord("a name", name); err != nil {
			return f, err
		}
	}
	return holdFilter(b.State, b.Cause, b.Older)
}

// bulkFind finds what is meant.
func (o *operator) bulkFind(id string, ask *bulkRequest, f reservation.HoldFilter, answer *bulkAnswer) ([]reservation.Record, error) {
	if ask.Names == nil {
		found, next, err := o.desk.HoldsAfter(o.ctx, id, f, ask.After, bulkMost)
		answer.Next = next
		return found, cursorFault(err)
	}
	byName, err := o.desk.Named(o.ctx, id, ask.Names)
	if err != nil {
		return nil, err
	}
	var found []reservation.Record
	for _, name := range ask.Names {
		switch f := byName[name]; {
		case f == nil:
			answer.NotFound = append(answer.NotFound, name)
		case len(f.Records) == 1 && !f.More:
			found = append(found, f.Records[0])
		default:
			answer.Ambiguous = append(answer.Ambiguous, ambiguousRef{name, f.Records, f.More})
		}
	}
	return found, nil
}

// bulkResolve resolves each by a script call of its own, and logs what it has done
// also where Redis goes away half-way.
func (o *operator) bulkResolve(id string, found []reservation.Record, ask *bulkRequest, to reservation.State, answer *bulkAnswer) (err error) {
	answer.Matched = len(found)
	var changed []string
	for i := range found {
		r := &found[i]
		before := answer.Changed
		if ask.DryRun {
			answer.foresee(r, to, ask.Force, o.desk.Now(id))
		} else if err = o.resolveOne(r, to, ask.Force, answer); err != nil {
			err = fmt.Errorf("%w; %d of %d before it are done", err, i, len(found))
			break
		}
		if answer.Changed > before {
			changed = append(changed, r.ID)
			if r.State == reservation.InDoubt {
				answer.FromInDoubt++
			}
		}
	}
	if ask.DryRun || len(changed) == 0 && err == nil {
		return err
	}
	change := "holds released"
	if to == reservation.Confirmed {
		change = "holds confirmed"
	}
	fields := []zap.Field{zap.String("sale", id), zap.Strings("reservations", changed), zap.String("cause", ask.Cause),
		zap.String("older", ask.Older), zap.Bool("named", ask.Names != nil), zap.Bool("force", ask.Force)}
	if noted := o.noted(err, change, fields...); err == nil || noted == nil {
		return noted
	} else if len(changed) > 0 {
		o.log.Info(change, append(fields, zap.String("by", o.by))...)
	}
	return err
}

func (o *operator) resolveOne(r *reservation.Record, to reservation.State, force bool, answer *bulkAnswer) error {
	if r.State == to {
		answer.Already++
		return nil
	}
	var err error
	if to == reservation.Confirmed {
		_, err = o.desk.Store.Confirm(o.ctx, r.Sale, r.ID, reservation.Operator, "operator")
	} else {
		word := reservation.Operator
		if force {
			word = reservation.Force
		}
		_, err = o.desk.Store.Release(o.ctx, r.Sale, r.ID, word, "operator")
	}
	if err == nil {
		answer.Changed++
		return nil
	}
	if _, ok := errors.AsType[*reservation.TooSoonError](err); ok {
		answer.TooSoon = append(answer.TooSoon, r.ID)
	} else if _, ok := errors.AsType[*reservation.ConflictError](err); ok {
		answer.Conflict = append(answer.Conflict, r.ID)
	} else if _, ok := errors.AsType[*reservation.RefundNeededError](err); ok {
		answer.RefundNeeded = append(answer.RefundNeeded, r.ID)
	} else if errors.Is(err, reservation.ErrNotFound) {
		answer.NotFound = append(answer.NotFound, r.ID)
	} else {
		return err
	}
	return nil
}

// foresee says what a request without dry_run would do.
func (b *bulkAnswer) foresee(r *reservation.Record, to reservation.State, force bool, now time.Time) {
	isHold := r.State == reservation.Held || r.State == reservation.InDoubt
	switch {
	case r.State == to:
		b.Already++
	case to == reservation.Confirmed && !isHold:
		b.Late = append(b.Late, r.ID)
	case to == reservation.Released && !force && now.Before(r.Deadline):
		b.TooSoon = append(b.TooSoon, r.ID)
	default:
		b.Changed++
	}
}
