package reservations

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// listHolds lists the holds of the sale in the path, or of all sales.
func listHolds(o *serve.Operator, r *http.Request) (any, error) {
	names := []string{"state", "cause", "older", "limit"}
	var sales []string
	if r.PathValue("id") != "" {
		id, err := request.SaleID(r)
		if err != nil {
			return nil, err
		}
		sales, names = []string{id}, append(names, "after")
	}
	query, err := request.Query(r, names...)
	if err != nil {
		return nil, err
	}
	filter, err := holdFilter(query.Get("state"), query.Get("cause"), query.Get("older"))
	if err != nil {
		return nil, err
	}
	limit := adminapi.HoldsDefault
	if query.Has("limit") {
		if limit, err = strconv.Atoi(query.Get("limit")); err != nil || limit < 1 || limit > adminapi.MaxHolds {
			return nil, request.Bad("limit must be 1 to %d", adminapi.MaxHolds)
		}
	}
	if sales == nil {
		if sales, err = o.Runtime.Store.Journal().Sales(o.Ctx); err != nil {
			return nil, err
		}
	} else if err := o.Known(sales[0]); err != nil {
		return nil, err
	}
	list := adminapi.HoldList{Holds: []reservation.Record{}}
	for _, id := range sales {
		if len(list.Holds) == limit {
			list.More = true
			break
		}
		if err := addHolds(o, &list, id, filter, query.Get("after"), limit); err != nil {
			return nil, err
		}
		if list.Next != "" {
			break
		}
	}
	if len(sales) > 1 || r.PathValue("id") == "" {
		list.Next = "" // it is a position in the list of one sale
	}
	return list, nil
}

// addHolds adds the holds of one sale. Where a filter selects few of very many, it searches
// for as long as the request's time allows.
func addHolds(o *serve.Operator, list *adminapi.HoldList, id string, filter reservation.HoldFilter, after string, limit int) error {
	for {
		found, next, err := o.Runtime.Store.HoldsAfter(o.Ctx, id, filter, after, limit-len(list.Holds))
		if err != nil {
			return cursorFault(err)
		}
		list.Holds = append(list.Holds, found...)
		if next == "" {
			return nil
		}
		if len(list.Holds) < limit {
			after = next
			continue
		}
		// the last one requested may be the last one there is
		rest, further, err := o.Runtime.Store.HoldsAfter(o.Ctx, id, filter, next, 1)
		if err != nil {
			return cursorFault(err)
		}
		if list.More = len(rest) > 0 || further != ""; list.More {
			list.Next = next
		}
		return nil
	}
}

func cursorFault(err error) error {
	if errors.Is(err, reservation.ErrCursor) {
		return request.Bad("%w", err)
	}
	return err
}

// holdFilter reads which reservations are meant. Without a state they are in doubt.
func holdFilter(state, cause, older string) (f reservation.HoldFilter, err error) {
	f = reservation.HoldFilter{State: record.InDoubt, Cause: cause}
	if state != "" {
		f.State = record.State(state)
	}
	if f.State != record.Held && f.State != record.InDoubt && f.State != record.Unbacked {
		return f, request.Bad("state must be held, in_doubt or unbacked")
	}
	if older != "" {
		span, err := sale.ParseSpan(older)
		if err != nil {
			return f, request.Bad("older %w", err)
		}
		f.Older = time.Duration(span)
	}
	return f, nil
}
