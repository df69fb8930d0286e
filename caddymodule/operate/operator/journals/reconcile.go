package journals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// reconcileBody bounds the request in bytes: MaxOrders with the longest names, and units of one
	// item for each.
	reconcileBody = 448 << 20
	// reconcileAsks bounds about how many reservations the shop is asked.
	reconcileAsks = 10_000
)

// reconciling admits one run at a time, because a run needs much memory.
var reconciling sync.Mutex

// reconcile compares a sale, and repairs it if the request says so. It may take minutes.
func reconcile(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	var ask adminapi.ReconcileRequest
	if err := request.JSON(r, reconcileBody, &ask); err != nil {
		return nil, err
	}
	shop, err := shopOf(o, &ask, id)
	if err != nil {
		return nil, err
	}
	if err := o.Known(id); err != nil {
		return nil, err
	}
	if !reconciling.TryLock() {
		return nil, fmt.Errorf("%w: this Caddy reconciles a sale already; wait for it, or ask another edge", shard.ErrRefused)
	}
	defer reconciling.Unlock()
	var cancel context.CancelFunc
	o.Ctx, cancel = context.WithTimeout(context.WithoutCancel(o.Ctx), adminapi.ReconcileTimeout)
	defer cancel()
	report, err := recovery.Reconcile(o.Ctx, o.Runtime.Store, o.App.Journals().Ledger(), id, recovery.Options{Repair: ask.Repair, By: o.By, Shop: shop})
	if report.Repaired > 0 {
		if e := o.Noted(nil, "sale repaired", zap.String("sale", id), zap.String("run", report.Run), zap.Int("repaired", report.Repaired), zap.Int("left", report.Left)); e != nil {
			return nil, e
		}
	}
	if err != nil {
		if report.Repaired > 0 {
			err = fmt.Errorf("%w; %d repairs before that are done, the same again does no harm", err, report.Repaired)
		}
		return nil, o.NoSale(id, err)
	}
	return report, nil
}

// shopOf returns how the run learns of the shop's orders; nil: it does not ask the shop.
func shopOf(o *serve.Operator, q *adminapi.ReconcileRequest, sale string) (*recovery.Shop, error) {
	switch {
	case q.TakeOver && q.Orders == nil:
		return nil, request.Bad("take_over goes with orders and units: a list of the shop's orders says what it has sold")
	case q.Probe && (q.Orders != nil || q.Units != nil):
		return nil, request.Bad("orders and probe do not go together")
	case q.Probe:
		return probeShop(o, sale)
	case q.Orders == nil && q.Units == nil:
		return nil, nil
	case len(q.Orders) == 0 || len(q.Orders) > adminapi.MaxOrders:
		return nil, request.Bad("orders must be 1 to %d", adminapi.MaxOrders)
	}
	for _, name := range q.Orders {
		if _, err := request.Word("the name of an order", name); err != nil {
			return nil, err
		}
	}
	if err := checkUnits(q); err != nil {
		return nil, err
	}
	if q.AsOf.IsZero() {
		q.AsOf = time.Now()
	}
	return &recovery.Shop{Orders: q.Orders, Units: q.Units, AsOf: q.AsOf, TakeOver: q.TakeOver}, nil
}

// checkUnits refuses units of no order, and those that no order can have.
func checkUnits(q *adminapi.ReconcileRequest) error {
	if len(q.Units) == 0 {
		return nil
	}
	named := make(map[string]bool, len(q.Orders))
	for _, name := range q.Orders {
		named[name] = true
	}
	for name, units := range q.Units {
		if !named[name] {
			return request.Bad("units has an order that is not in orders: %.128q", name)
		}
		for sku, n := range units {
			if n < 0 || n > sale.MaxUnits {
				return request.Bad("units: the order %s has %d units of %.128q: 0 to %d", name, n, sku, int64(sale.MaxUnits))
			}
		}
	}
	return nil
}

// errNoProbe says that the gate of a reservation has no probe to ask the shop with.
var errNoProbe = errors.New("its gate has no probe")

// probeShop asks the shop with the probes of the gates.
func probeShop(o *serve.Operator, sale string) (*recovery.Shop, error) {
	probing := make(map[string]*gate.Gate)
	for _, g := range gate.Of(o.App).List() {
		if g.Terms().Probe != nil {
			probing[g.Name] = g
		}
	}
	if len(probing) == 0 {
		return nil, request.Bad("no gate has a probe: configure `in_doubt probe <url>`, or give a file of the shop's orders")
	}
	ask := func(ctx context.Context, name, id, ref string) (bool, error) {
		g := probing[name]
		if g == nil {
			return false, errNoProbe
		}
		verdict, cause, err := g.Terms().Probe.AskAbout(ctx, o.Runtime.Store, sale, reservation.ProbeDue{ID: id, Ref: ref})
		if err == nil && verdict == reservation.ProbeUnknown {
			err = fmt.Errorf("the shop answers %s", cause)
		}
		return verdict == reservation.ProbePresent, err
	}
	return &recovery.Shop{Ask: ask, AskMost: reconcileAsks}, nil
}
