package inquiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Refusal refuses an attempt when the shop's answer to a lookup, or the error in its place, has no cart; nil: the answer may
// have one. why is the shop's fault, for the log; empty: it has none. graphQL: the shop answers in GraphQL.
func Refusal(ctx context.Context, a *outcome.ShopAnswer, err error, graphQL bool) (no *sale.Refusal, why string) {
	switch {
	case errors.Is(err, ErrBusy):
		return refuse.Busy, ""
	case errors.Is(err, ErrNoValue):
		return sale.Refuse(sale.NoBuyer), "" // its token lacks a claim, or has one that no URL can have
	case err != nil && ctx.Err() != nil: // the client has left
		return refuse.Unavailable, ""
	case err != nil:
		return refuse.Unavailable, err.Error()
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return sale.Refuse(sale.NoBuyer), ""
	case a.Status == http.StatusNotFound:
		return sale.Refuse(sale.NoCart), ""
	case a.Status/100 != 2:
		why = fmt.Sprintf("status %d", a.Status)
	case !a.Whole:
		why = "the answer is longer than 64 KiB"
	case a.Header.Get("Content-Encoding") != "": // it is gone where it could be undone
		why = "the answer has an encoding that was not asked for"
	case graphQL && hasErrors(a.Body):
		why = "the answer has errors"
	default:
		return nil, ""
	}
	return refuse.Unavailable, why
}

// hasErrors reports whether a server of GraphQL has answered with errors, which have the status 200.
func hasErrors(body []byte) bool {
	var answer struct {
		Errors []json.RawMessage `json:"errors"`
	}
	return json.Unmarshal(body, &answer) == nil && len(answer.Errors) > 0
}
