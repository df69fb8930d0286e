package reservations

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// returnsBody bounds a request's body in bytes: adminapi.MaxBulk returns of one line each have less.
const returnsBody = 512 << 10

// giveBackMany returns units of many orders, each by a script call of its own.
func giveBackMany(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	var ask adminapi.ReturnsRequest
	if err := request.JSON(r, returnsBody, &ask); err != nil {
		return nil, err
	}
	names, err := namesOf(ask.Returns)
	if err != nil {
		return nil, err
	}
	if err := o.Known(id); err != nil {
		return nil, err
	}
	byName, err := o.Runtime.Store.Named(o.Ctx, id, names)
	if err != nil {
		return nil, err
	}
	run := &returnRun{Operator: o, sale: id, ask: &ask, foreseen: make(map[string]int64)}
	return run.all(byName)
}

// namesOf checks the returns of a request, and returns the orders that they name.
func namesOf(all []adminapi.NamedReturn) (names []string, err error) {
	if len(all) == 0 || len(all) > adminapi.MaxBulk {
		return nil, request.Bad("returns must be 1 to %d", adminapi.MaxBulk)
	}
	for i, one := range all {
		if _, err := request.Word("a name", one.Name); err != nil {
			return nil, err
		}
		if _, err := request.Word("the id of a return", one.ID); err != nil {
			return nil, err
		}
		for _, l := range one.Lines {
			if l.SKU == "" || l.Quantity < 1 || l.Quantity > sale.MaxUnits {
				return nil, request.Bad("returns[%d]: a line has a sku and 1 unit or more", i)
			}
		}
		names = append(names, one.Name)
	}
	return names, nil
}

// returnRun makes the returns of one request.
type returnRun struct {
	*serve.Operator
	sale   string
	ask    *adminapi.ReturnsRequest
	answer adminapi.ReturnsAnswer
	// foreseen are the units that a dry run has counted, by reservation and cell.
	foreseen map[string]int64
	made     []string // reservations that have changed
}

func (run *returnRun) all(byName map[string]*reservation.Found) (any, error) {
	run.answer.DryRun = run.ask.DryRun
	var err error
	for i := range run.ask.Returns {
		one := &run.ask.Returns[i]
		if err = run.one(one, byName[one.Name]); err == nil {
			continue
		}
		if !isRefusal(err) {
			err = fmt.Errorf("%w; %d of %d before it are done", err, i, len(run.ask.Returns))
			break
		}
		run.answer.Failed = append(run.answer.Failed, adminapi.FailedReturn{Index: i, Name: one.Name, Error: err.Error()})
		err = nil
	}
	if !run.ask.DryRun {
		err = run.note(err)
	}
	return &run.answer, err
}

// note logs what was returned, and waits for replicas: what an earlier request returned counts too.
func (run *returnRun) note(err error) error {
	if err == nil {
		err = run.Runtime.Store.Shard().AwaitReplicas(run.Ctx)
	}
	if len(run.made) == 0 {
		return err
	}
	return run.Noted(err, "units returned", zap.String("sale", run.sale), zap.Strings("reservations", run.made), zap.Int64("units", run.answer.Units))
}

// returnRefusal is why one return cannot be made.
type returnRefusal string

func (r returnRefusal) Error() string { return string(r) }

// isRefusal tells whether the other returns of the request can go on.
func isRefusal(err error) bool {
	_, refused := errors.AsType[returnRefusal](err)
	_, few := errors.AsType[*reservation.TooManyError](err)
	_, conflict := errors.AsType[*reservation.ConflictError](err)
	return refused || few || conflict || errors.Is(err, reservation.ErrReused) || errors.Is(err, reservation.ErrNotFound)
}

// one makes a return of the order that its name has.
func (run *returnRun) one(one *adminapi.NamedReturn, found *reservation.Found) error {
	switch {
	case found == nil:
		return returnRefusal("the sale has no such reservation, and no order with this ref")
	case len(found.Records) != 1 || found.More:
		return returnRefusal("several buyers have used this ref: name the reservation by its id")
	}
	r := &found.Records[0]
	if r.State != record.Confirmed {
		return returnRefusal(fmt.Sprintf("it is %s, and only units that were sold come back", r.State))
	}
	lines := one.Lines
	if l, ok := run.Runtime.Catalogue().Sale(run.sale); ok {
		lines = l.Sale.Unbundle(lines)
	}
	lines, err := withRegions(lines, r.Lines)
	if err != nil {
		return err
	}
	units, again, err := run.take(r, one, lines)
	if err != nil {
		return err
	}
	if len(lines) == 0 && r.More != "" {
		beyond, err := run.rest(r.More, one)
		if err != nil {
			return err
		}
		units, again = units+beyond, again && beyond == 0
	}
	run.count(r.ID, units, again)
	return nil
}

func (run *returnRun) count(id string, units int64, again bool) {
	if again {
		run.answer.Already++
		return
	}
	run.answer.Returned++
	run.answer.Units += units
	run.made = append(run.made, id)
}

// rest returns what the shop has sold beyond an order's hold, unless it is back already.
func (run *returnRun) rest(id string, one *adminapi.NamedReturn) (int64, error) {
	more, err := run.Runtime.Store.ReservationIn(run.Ctx, run.sale, id)
	if err != nil || more.State != record.Confirmed || left(more, "") == 0 {
		return 0, err
	}
	units, again, err := run.take(more, one, nil)
	if again {
		units = 0
	}
	return units, err
}

// take makes a return of one reservation, or foresees it. again: it was made before, and changes nothing.
func (run *returnRun) take(r *reservation.Record, one *adminapi.NamedReturn, lines []sale.Line) (units int64, again bool, err error) {
	again, err = run.Runtime.Store.Shard().Data(run.sale).Has(run.Ctx, shard.ReturnsKey, r.ID+"|"+one.ID)
	if err != nil {
		return 0, false, err
	}
	units = unitsOf(lines)
	if len(lines) == 0 {
		units = left(r, "")
	}
	if run.ask.DryRun {
		if !again {
			err = run.foresee(r, lines)
		}
		return units, again, err
	}
	_, err = run.Runtime.Store.Return(run.Ctx, run.sale, r.ID, reservation.Return{ID: one.ID, Restock: one.Restock, Lines: lines, Cause: run.Cause})
	return units, again, err
}

// foresee refuses what Return would refuse.
func (run *returnRun) foresee(r *reservation.Record, lines []sale.Line) error {
	if len(lines) == 0 && left(r, "") == 0 {
		return &reservation.TooManyError{}
	}
	for _, l := range lines {
		key := r.ID + "|" + l.Cell()
		run.foreseen[key] += l.Quantity
		if has := left(r, l.Cell()); run.foreseen[key] > has {
			return &reservation.TooManyError{Line: l, Left: max(has-run.foreseen[key]+l.Quantity, 0)}
		}
	}
	return nil
}

// withRegions adds the region of each line that has none, and refuses items that the order does not have.
func withRegions(lines, sold []sale.Line) ([]sale.Line, error) {
	out := make([]sale.Line, 0, len(lines))
	for _, l := range lines {
		var regions []string
		for _, s := range sold {
			if s.SKU == l.SKU && (l.Region == "" || l.Region == s.Region) {
				regions = append(regions, s.Region)
			}
		}
		switch len(regions) {
		case 0:
			return nil, returnRefusal("the order has no " + l.Cell())
		case 1:
			l.Region = regions[0]
		default:
			return nil, returnRefusal("the order has " + l.SKU + " in several regions: name one of " + strings.Join(regions, ", "))
		}
		out = append(out, l)
	}
	return out, nil
}

// left is how many units of a cell have not come back; of all cells where it is empty.
func left(r *reservation.Record, cell string) int64 {
	return unitsIn(r.Lines, cell) - unitsIn(r.Returned, cell)
}

func unitsOf(lines []sale.Line) int64 { return unitsIn(lines, "") }

func unitsIn(lines []sale.Line, cell string) (n int64) {
	for _, l := range lines {
		if cell == "" || l.Cell() == cell {
			n += l.Quantity
		}
	}
	return n
}
