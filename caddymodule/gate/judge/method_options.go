package judge

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// serveOptions serves a request that asks what the route can do. Some shops take every method for an
// order, so it goes on without its query; where an order needs neither query nor body, it is answered
// here.
func (j *Judge) serveOptions(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, began time.Time) error {
	no, err := j.CheckOptions(r)
	switch {
	case err != nil:
		reply.DropPayload(r)
		return caddyhttp.Error(http.StatusBadRequest, err)
	case no != nil:
		return j.Refuse(w, r, "", began, no)
	case j.OnlyChecks(): // the gate of the order route decides
		return next.ServeHTTP(w, r)
	case j.AnswersOptions():
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	reply.DropQuery(r)
	guard.Decide(r)
	return next.ServeHTTP(w, r)
}

// CheckOptions refuses an OPTIONS request that the shop could take for another one. The error is
// that of reading the body.
func (j *Judge) CheckOptions(r *http.Request) (*sale.Refusal, error) {
	attempt.StripMethodOverride(r.Header) // where no guard has
	body, no, err := j.filters.Reader.ReadBody(r)
	if no != nil || err != nil {
		return no, err
	}
	return attempt.CheckOptions(r, body), nil
}

// AnswersOptions reports whether the shop could take an OPTIONS request for an order even without its query
// and body.
func (j *Judge) AnswersOptions() bool { return !j.OnlyChecks() && j.buysBare() }

// buysBare reports whether a request with neither query nor body may be an attempt.
func (j *Judge) buysBare() bool {
	return j.filters.Operations == nil && j.filters.Reader.FindsItemElsewhere()
}
