package reservations

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// bulkBody bounds a request's body in bytes: adminapi.MaxBulk names of 128 bytes.
const bulkBody = 80 << 10

// fileBody bounds a request with a file: each of its bytes may be escaped.
const fileBody = 3 * adminapi.MaxFileText

func confirmHolds(o *serve.Operator, r *http.Request) (any, error) {
	return bulk(o, r, record.Confirmed)
}

func releaseHolds(o *serve.Operator, r *http.Request) (any, error) {
	return bulk(o, r, record.Released)
}

// namesIn reads the orders that a file names, as the command does. It changes nothing: what it answers is for the
// names of a BulkRequest.
func namesIn(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	if _, err := request.SaleID(r); err != nil {
		return nil, err
	}
	var f adminapi.OrderFile
	if err := request.JSON(r, fileBody, &f); err != nil {
		return nil, err
	}
	if len(f.Text) > adminapi.MaxFileText {
		return nil, request.Bad("the file is larger than %d bytes: split it, or use 'caddy stockgate holds SALE --confirm-from FILE'", adminapi.MaxFileText)
	}
	name := adminapi.PlainText(f.Name, 64)
	list, err := adminapi.ReadOrders(strings.NewReader(f.Text), cmp.Or(name, "the file"), adminapi.OrderColumns{Order: f.Column, NamesOnly: true})
	switch {
	case err != nil:
		return nil, request.Bad("%w", err)
	case len(list.Names) == 0:
		return nil, request.Bad("%s names no order", list.File)
	}
	return adminapi.OrderNames{Names: list.Names}, nil
}

func bulk(o *serve.Operator, r *http.Request, to record.State) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	var ask adminapi.BulkRequest
	if err := request.JSON(r, bulkBody, &ask); err != nil {
		return nil, err
	}
	filter, err := checkBulk(&ask, to)
	if err != nil {
		return nil, err
	}
	if err := o.Known(id); err != nil {
		return nil, err
	}
	answer := &adminapi.BulkAnswer{DryRun: ask.DryRun}
	found, err := bulkFind(o, id, &ask, filter, answer)
	if err != nil {
		return nil, err
	}
	err = bulkResolve(o, id, found, &ask, to, answer)
	if err == nil && !ask.DryRun { // holds that an earlier request resolved count too
		err = o.Runtime.Store.Shard().AwaitReplicas(o.Ctx)
	}
	if err == nil {
		answer.InDoubt, err = o.Runtime.Store.CountHolds(o.Ctx, id, record.InDoubt)
	}
	return answer, err
}

// checkBulk refuses a request that does not say clearly which holds it means, so that a
// mistake resolves none.
func checkBulk(b *adminapi.BulkRequest, to record.State) (f reservation.HoldFilter, err error) {
	chosen := b.State != "" || b.Cause != "" || b.Older != "" || b.All || b.After != ""
	switch {
	case b.Force && to != record.Released:
		return f, request.Bad("force goes with a release only")
	case b.Names != nil && to != record.Confirmed:
		return f, request.Bad("names go with a confirmation only")
	case b.Names != nil && chosen:
		return f, request.Bad("names stand alone: state, cause, older, all and after do not go with them")
	case b.Names != nil && (len(b.Names) == 0 || len(b.Names) > adminapi.MaxBulk):
		return f, request.Bad("names must be 1 to %d", adminapi.MaxBulk)
	case b.Names == nil && b.Cause == "" && b.Older == "" && !b.All:
		return f, request.Bad("which holds? Give cause or older, or all (--cause, --older, --all)")
	}
	for _, name := range b.Names {
		if _, err := request.Word("a name", name); err != nil {
			return f, err
		}
	}
	return holdFilter(b.State, b.Cause, b.Older)
}

// bulkFind finds the holds that the request means.
func bulkFind(o *serve.Operator, id string, ask *adminapi.BulkRequest, f reservation.HoldFilter, answer *adminapi.BulkAnswer) ([]reservation.Record, error) {
	if ask.Names == nil {
		found, next, err := o.Runtime.Store.HoldsAfter(o.Ctx, id, f, ask.After, adminapi.MaxBulk)
		answer.Next = next
		return found, cursorFault(err)
	}
	byName, err := o.Runtime.Store.Named(o.Ctx, id, ask.Names)
	if err != nil {
		return nil, err
	}
	var found []reservation.Record
	named := make(map[string]bool, len(ask.Names))
	for _, name := range ask.Names {
		if named[name] {
			continue
		}
		named[name] = true
		switch f := byName[name]; {
		case f == nil:
			answer.NotFound = append(answer.NotFound, name)
		case len(f.Records) == 1 && !f.More:
			found = append(found, f.Records[0])
		default:
			answer.Ambiguous = append(answer.Ambiguous, adminapi.AmbiguousRef{Ref: name, Reservations: f.Records, More: f.More})
		}
	}
	return found, nil
}

// bulkResolve resolves each hold by a script call of its own. It logs what it has done even
// if Redis stops answering half-way.
func bulkResolve(o *serve.Operator, id string, found []reservation.Record, ask *adminapi.BulkRequest, to record.State, answer *adminapi.BulkAnswer) (err error) {
	answer.Matched = len(found)
	var changed []string
	for i := range found {
		r := &found[i]
		before := answer.Changed
		if ask.DryRun {
			foresee(answer, r, to, ask.Force, o.Runtime.Store.Now(id))
		} else if err = resolveOne(o, r, to, ask.Force, answer); err != nil {
			err = fmt.Errorf("%w; %d of %d before it are done", err, i, len(found))
			break
		}
		if answer.Changed > before {
			changed = append(changed, r.ID)
			if r.State == record.InDoubt {
				answer.FromInDoubt++
			}
		}
	}
	if ask.DryRun || len(changed) == 0 && err == nil {
		return err
	}
	change := "holds released"
	if to == record.Confirmed {
		change = "holds confirmed"
	}
	fields := []zap.Field{zap.String("sale", id), zap.Strings("reservations", changed), zap.String("cause", ask.Cause),
		zap.String("older", ask.Older), zap.Bool("named", ask.Names != nil), zap.Bool("force", ask.Force)}
	if noted := o.Noted(err, change, fields...); err == nil || noted == nil {
		return noted
	} else if len(changed) > 0 {
		o.Log.Info(change, append(fields, zap.String("by", o.By))...)
	}
	return err
}

func resolveOne(o *serve.Operator, r *reservation.Record, to record.State, force bool, answer *adminapi.BulkAnswer) error {
	if r.State == to {
		answer.Already++
		return nil
	}
	var err error
	if to == record.Confirmed {
		_, err = o.Runtime.Store.Confirm(o.Ctx, r.Sale, r.ID, reservation.SourceOperator, o.Cause)
	} else {
		word := reservation.SourceOperator
		if force {
			word = reservation.SourceForce
		}
		_, err = o.Runtime.Store.Release(o.Ctx, r.Sale, r.ID, word, o.Cause)
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

// foresee adds to the answer what a request without dry_run would do.
func foresee(b *adminapi.BulkAnswer, r *reservation.Record, to record.State, force bool, now time.Time) {
	isHold := r.State == record.Held || r.State == record.InDoubt
	switch {
	case r.State == to:
		b.Already++
	case to == record.Confirmed && !isHold:
		b.Late = append(b.Late, r.ID)
	case to == record.Released && !force && r.Mode != record.ModeQueued && (now.Before(r.Deadline) || now.Before(r.Exp)):
		b.TooSoon = append(b.TooSoon, r.ID)
	default:
		b.Changed++
	}
}
