package resolve

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// cause is what record and journal have of what a webhook did; lua/bindings.lua knows it.
	cause = "webhook"
	// beyondMaxHold is longer than any hold: max_hold does not bind a buyer after the payment.
	beyondMaxHold = 10 * 365 * 24 * time.Hour
	// looks is how often a hold is looked up that changes at the same time.
	looks = 4
)

// settling is one webhook on its way to the shop and back.
type settling struct {
	of      *Resolve
	runtime *edgeruntime.Runtime
	ctx     context.Context
	several bool // it tells of several payments: one that cannot be settled does not keep it from the shop
	holds   []hold
}

func (s *settling) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, callTimeout)
}

// prepare finds the hold of an event, and makes sure that a paid one has its units until the
// shop has answered. A refusal: the webhook must not be forwarded.
func (s *settling) prepare(e event) *refusal {
	ctx, cancel := s.call()
	defer cancel()
	for range looks {
		found, err := s.runtime.Store.ByRef(ctx, "", e.ref)
		if err == nil && len(found.Records) == 0 && !found.More {
			if err = s.runtime.Missing(ctx, "", reservation.ErrNotFound); errors.Is(err, reservation.ErrNotFound) {
				meter.CountWebhook(meter.WebhookUnknownRef) // an order of unlisted items is the shop's
				return nil
			}
		}
		if err != nil {
			return s.failed("a payment's hold could not be looked up", hold{}, err)
		}
		r, no := s.only(&found, e)
		if no != nil || r == nil {
			return s.without(no)
		}
		one := hold{r.Sale, r.ID, e.then}
		if s.isSettled(r, e) {
			meter.CountWebhook(meter.WebhookSettled)
			return nil
		}
		if e.then == outcome.Confirm {
			again, no := s.keep(ctx, r.State, one)
			if again {
				continue
			}
			if no != nil {
				return s.without(no)
			}
		}
		s.add(one)
		return nil
	}
	return s.failed("a payment's hold changed again and again", hold{}, shard.ErrUnavailable)
}

// without returns the refusal of one event, or nil where the webhook goes to the shop without it: only
// a delivery that could have another result is asked for where others wait for this one.
func (s *settling) without(no *refusal) *refusal {
	if no == nil || !s.several || no.counts != meter.WebhookRefundNeeded && no.counts != meter.WebhookAmbiguous {
		return no
	}
	meter.CountWebhook(no.counts)
	return nil
}

// only returns the one reservation with a ref; nil: a release or a payment of what is settled
// names several, and the shop decides. A payment of which it is not clear whose units it paid
// for is refused.
func (s *settling) only(found *reservation.Found, e event) (*reservation.Record, *refusal) {
	if len(found.Records) == 1 && !found.More {
		return &found.Records[0], nil
	}
	var ids []string
	settled := false
	for i := range found.Records {
		r := &found.Records[i]
		settled = settled || r.State == record.Confirmed
		ids = append(ids, r.ID)
	}
	if e.then == outcome.Release || settled {
		meter.CountWebhook(meter.WebhookSettled)
		return nil, nil
	}
	s.of.log.Error(s.said("a payment names a ref that several reservations have, and is not forwarded: confirm the one that was paid for with `caddy stockgate reservation confirm`, then the next delivery goes to the shop",
		"a payment names a ref that several reservations have, and goes to the shop because others came with it: confirm the one that was paid for with `caddy stockgate reservation confirm` before its deadline"),
		zap.String("ref", e.ref), zap.Strings("reservations", ids))
	return nil, unavailable(meter.WebhookAmbiguous, "several reservations have this ref: an operator must confirm the one that was paid for")
}

// isSettled reports whether the event changes nothing of a reservation.
func (s *settling) isSettled(r *reservation.Record, e event) bool {
	switch r.State {
	case record.Confirmed:
		return true
	case record.Released: // by the shop or an operator; a webhook that said so may be followed by a payment
		return e.then == outcome.Release || !strings.HasPrefix(r.Cause, cause)
	case record.Held, record.InDoubt:
		_, again := r.HeldAgain() // the event was of the hold that has ended, and comes once more
		return again && e.then == outcome.Release
	}
	return e.then == outcome.Release
}

// keep makes sure that a paid reservation has its units. again: it has changed since it was
// looked up.
func (s *settling) keep(ctx context.Context, state record.State, h hold) (again bool, no *refusal) {
	switch state {
	case record.InDoubt: // it keeps them until it is settled
		return false, nil
	case record.Held:
		_, err := s.runtime.Store.Extend(ctx, h.sale, h.id, time.Duration(s.of.HoldFor), beyondMaxHold)
		if _, changed := errors.AsType[*reservation.ConflictError](err); changed || errors.Is(err, reservation.ErrNotFound) {
			return true, nil
		}
		if err != nil {
			return false, s.failed("a paid hold could not be put off", h, err)
		}
		return false, nil
	}
	// it has ended: its units are taken again, or are gone
	became, err := s.runtime.Store.Confirm(ctx, h.sale, h.id, reservation.SourceAnswer, cause)
	switch {
	case errors.Is(err, reservation.ErrNotFound):
		return true, nil
	case err != nil:
		return false, s.failed("the units of a paid order could not be taken again", h, err)
	case became == record.Unbacked:
		return false, s.refund(h)
	}
	return false, nil
}

// refund says that a buyer has paid for units that other buyers have. The reservation is
// unbacked until it is resolved: alerts, doctor and reports have it.
func (s *settling) refund(h hold) *refusal {
	s.of.log.Error(s.said("refund_needed: a payment came for units that are sold to others, and is not forwarded: add stock and let the provider deliver it again, or refund the buyer and release the reservation",
		"refund_needed: a payment came for units that are sold to others, and goes to the shop because others came with it: add stock and confirm the reservation, or cancel the order, refund the buyer and release the reservation"),
		h.fields()...)
	return unavailable(meter.WebhookRefundNeeded, "refund_needed: the units of this order are sold to others")
}

// said returns what the log says of an event, by whether the webhook goes to the shop without it.
func (s *settling) said(alone, among string) string {
	if s.several {
		return among
	}
	return alone
}

// failed says that Redis did not answer.
func (s *settling) failed(what string, h hold, err error) *refusal {
	if entry := s.of.log.Check(zap.WarnLevel, what); entry != nil {
		entry.Write(append(h.fields(), zap.Error(err))...)
	}
	return unavailable(meter.WebhookRedisFailed, "the stock cannot be reached: deliver it again")
}

// settle is called when the shop has taken the webhook. It settles what it can; a refusal: not all of it.
func (s *settling) settle() (no *refusal) {
	for _, h := range s.holds {
		counts, err := s.one(h)
		if err != nil {
			no = s.failed("redis could not be told that the shop took a payment's webhook", h, err)
			continue
		}
		meter.CountWebhook(counts)
	}
	return no
}

// one settles one hold.
func (s *settling) one(h hold) (meter.WebhookResult, error) {
	if h.then == outcome.Confirm {
		return meter.WebhookConfirmed, s.confirm(h)
	}
	_, err := s.runtime.ReleaseEventually(s.ctx, h.sale, h.id, reservation.SourceShop, cause)
	if _, sold := errors.AsType[*reservation.ConflictError](err); sold { // meanwhile, by the shop's own word
		return meter.WebhookSettled, nil
	}
	return meter.WebhookReleased, err
}

func (s *settling) confirm(h hold) error {
	state, err := s.runtime.ConfirmEventually(s.ctx, h.sale, h.id, cause)
	if errors.Is(err, reservation.ErrNotFound) {
		ctx, cancel := s.call()
		defer cancel()
		if err = s.runtime.Missing(ctx, h.sale, err); errors.Is(err, reservation.ErrNotFound) {
			s.of.log.Error("the shop took a payment whose reservation redis does not know: it has lost data; check the order by hand", h.fields()...)
			return nil
		}
	}
	if err == nil && state == record.Unbacked {
		_ = s.refund(h) // the shop has the order: it is logged
	}
	return err
}
