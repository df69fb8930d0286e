package sales

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func showSchedule(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	b, err := o.Runtime.Store.SaleStock(o.Ctx, id)
	if err != nil {
		return nil, o.NoSale(id, err)
	}
	answer := adminapi.SaleSchedule{ID: id, Timezone: b.Timezone, Scheduled: b.Scheduled, Performed: b.Performed}
	if answer.Scheduled == nil {
		answer.Scheduled = []reservation.ScheduledAct{}
	}
	if answer.Performed == nil {
		answer.Performed = []reservation.ScheduledAct{}
	}
	return answer, nil
}

func scheduleAct(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	var plan reservation.PlannedAct
	if err := request.JSON(r, serve.SmallBody, &plan); err != nil {
		return nil, err
	}
	act, isNew, warning, err := o.Runtime.Store.Schedule(o.Ctx, id, plan, o.By)
	if wrong, ok := errors.AsType[*reservation.ActError](err); ok {
		return nil, request.Bad("%w", wrong)
	}
	if err = o.Noted(o.NoSale(id, err), "act scheduled", append(fieldsOf(id, act), zap.Bool("already", !isNew))...); err != nil {
		return nil, err
	}
	answer := adminapi.ActPlanned{ID: id, Act: act, Already: !isNew, Timezone: timezone(o, id)}
	if warning != "" {
		answer.Warnings = []string{warning}
	}
	return answer, nil
}

func cancelAct(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil || number < 1 {
		return nil, request.Bad("the act is named by its number, as `sale show` has it")
	}
	act, err := o.Runtime.Store.CancelAct(o.Ctx, id, number)
	if err = o.Noted(o.NoSale(id, err), "scheduled act cancelled", fieldsOf(id, act)...); err != nil {
		return nil, err
	}
	return adminapi.ActCancelled{ID: id, Act: act, Timezone: timezone(o, id)}, nil
}

// fieldsOf names an act for the log; nil: there is none.
func fieldsOf(id string, act *reservation.ScheduledAct) []zap.Field {
	fields := []zap.Field{zap.String("sale", id)}
	if act != nil {
		fields = append(fields, zap.Int64("act", act.Number), zap.String("what", act.What()), zap.Time("at", act.At))
	}
	return fields
}

// timezone returns the time zone of a sale, as far as this edge knows it.
func timezone(o *serve.Operator, id string) string {
	if l, ok := o.Runtime.Catalogue().Sale(id); ok {
		return l.Sale.Timezone
	}
	return ""
}

// hopelessActs warns of acts that a file makes impossible.
func hopelessActs(o *serve.Operator, next *sale.Sale) (all []string) {
	coming, _, err := o.Runtime.Store.Acts(o.Ctx, next)
	if err != nil {
		return nil // the sale itself was read or changed
	}
	for i := range coming {
		a := &coming[i]
		_, sold := next.LineOf(sale.Cell(a.SKU, a.Region))
		why := ""
		switch {
		case a.Act == sale.ActStock && !sold:
			why = "the sale does not have that item any more"
		case a.Act != sale.ActClose && !a.At.Before(next.EndsAt):
			why = "the sale has ended by then"
		default:
			continue
		}
		all = append(all, fmt.Sprintf("act %d, %s at %s, fails: %s; 'caddy stockgate sale schedule cancel %s %d' takes it back", a.Number, a.What(), adminapi.SaleTime(a.At, next.Timezone), why, next.ID, a.Number))
	}
	return all
}
