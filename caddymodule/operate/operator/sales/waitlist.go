package sales

import (
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// checkReaders refuses a file with a waiting list if handlers of this edge could not know the people on it: the
// configuration would not load again.
func checkReaders(o *serve.Operator, next *sale.Sale) error {
	if l, ok := o.Runtime.Catalogue().Sale(next.ID); ok && l.Status == sale.Closed {
		return nil
	}
	if faults := judge.Of(o.App).Unread(next); len(faults) > 0 {
		return request.Bad("%s", strings.Join(faults, "; "))
	}
	return nil
}

// waitlistOf is the waiting list of a sale; nil: there is none.
func waitlistOf(o *serve.Operator, id string) (*adminapi.WaitlistState, error) {
	l, ok := o.Runtime.Catalogue().Sale(id)
	if !ok {
		return nil, nil
	}
	s, err := o.Runtime.List(o.Ctx, l)
	if s == nil || err != nil {
		return nil, err
	}
	return &adminapi.WaitlistState{
		ID: id, People: s.People, Offered: s.Offered, Most: s.Most, Offer: l.Sale.Waitlist.Offer.String(),
		Entered: s.Entered, Offers: s.Offers, Accepted: s.Accepted, Lapsed: s.Lapsed, Left: s.Left, Closed: s.Closed, Other: s.Other,
		OffersPausedSince: s.PausedSince,
	}, nil
}

// saleWithList returns the sale that the path names, which must have a waiting list.
func saleWithList(o *serve.Operator, r *http.Request) (string, error) {
	if _, err := request.Query(r); err != nil {
		return "", err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return "", err
	}
	if err := o.Known(id); err != nil {
		return "", err
	}
	if l, ok := o.Runtime.Catalogue().Sale(id); !ok || l.Sale.Waitlist == nil {
		return "", shard.Refused("sale %s has no waiting list: write `waitlist` in its file", id)
	}
	return id, nil
}

func showWaitlist(o *serve.Operator, r *http.Request) (any, error) {
	id, err := saleWithList(o, r)
	if err != nil {
		return nil, err
	}
	return waitlistOf(o, id)
}

func pauseOffers(o *serve.Operator, r *http.Request) (any, error) {
	return changeOffers(o, r, true, "offers paused")
}

func resumeOffers(o *serve.Operator, r *http.Request) (any, error) {
	return changeOffers(o, r, false, "offers resumed")
}

// changeOffers lets no more offers be made, or lets them go on, at all edges.
func changeOffers(o *serve.Operator, r *http.Request, stop bool, change string) (any, error) {
	id, err := saleWithList(o, r)
	if err != nil {
		return nil, err
	}
	changed, err := o.Runtime.PauseOffers(o.Ctx, id, stop, o.By)
	if err = o.NoSale(id, err); changed || err != nil {
		if err = o.Noted(err, change, zap.String("sale", id)); err != nil {
			return nil, err
		}
	}
	return waitlistOf(o, id)
}
