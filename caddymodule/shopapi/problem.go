package shopapi

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// apiProblem is an answer of the shop's API that is not a reservation (RFC 9457).
type apiProblem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Reason string `json:"reason"`
	// State is the reservation's, where it forbids the request.
	State record.State `json:"state,omitempty"`
	// Reservations are those that have the ref, where there are several.
	Reservations []string `json:"reservations,omitempty"`
	// Detail is for people: programs read Reason.
	Detail string `json:"detail,omitempty"`

	allow, challenge string // headers
}

func (p *apiProblem) Error() string { return p.Reason + ": " + p.Detail }

// apiTitles are the fixed titles of the reasons.
var apiTitles = map[string]string{
	"malformed":      "The request cannot be read.",
	"body_too_large": "The body is too large.",
	"media_type":     "The body must be JSON.",
	"unauthorized":   "A key is needed.",
	"not_found":      "There is no such reservation.",
	"no_such_route":  "There is no such path.",
	"method":         "The method does not fit the path.",
	"conflict":       "The state of the reservation forbids it.",
	"refund_needed":  "The units are sold to others: refund the buyer.",
	"ambiguous":      "Several reservations have the ref.",
	"too_many":       "More would be returned than was sold.",
	"key_reused":     "The id was used for another return.",
	"unavailable":    "Redis does not answer: ask again.",
}

// header sets the headers that the answer's reason needs.
func (p *apiProblem) header(h http.Header) {
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(3))) // clients come back in different seconds
	}
}

// problemOf turns an error into an answer of the API. It logs an error that the shop cannot
// act on.
func (a *API) problemOf(c *apiCall, err error) *apiProblem {
	p, ok := errors.AsType[*apiProblem](err)
	if !ok {
		p = stateProblem(err)
	}
	if p != nil && p.Reason == "not_found" && c.sale != "" {
		p.Detail = "redis knows no sale " + c.sale + ", or no reservation by that id or ref in it"
	}
	if p == nil {
		p = &apiProblem{Status: http.StatusServiceUnavailable, Reason: "unavailable", Detail: "it is unknown whether anything has changed: ask for the same again"}
		if errors.Is(err, shard.ErrNotReplicated) {
			p.Detail = "it is done, but not safe yet: too few replicas of redis have it; ask for the same again"
		}
		if _, lost := errors.AsType[*edge.LostError](err); lost {
			p.Detail = "redis has lost the sale, which says nothing about the reservation: ask for the same again when the sale is restored"
		}
		level := zapcore.ErrorLevel
		if isUnanswered(err) {
			level = zapcore.WarnLevel
		}
		if entry := a.log.Check(level, "the shop's request could not be answered"); entry != nil {
			entry.Write(zap.String("operation", c.operation), zap.String("reservation", c.id), zap.Error(err))
		}
	}
	p.Type, p.Title = "urn:stockgate:api:"+p.Reason, apiTitles[p.Reason]
	return p
}

// stateProblem returns the answer to an error that follows from the reservation's state; nil:
// it is another error.
func stateProblem(err error) *apiProblem {
	if conflict, ok := errors.AsType[*reservation.ConflictError](err); ok {
		return &apiProblem{Status: http.StatusConflict, Reason: "conflict", State: conflict.State, Detail: conflict.Error()}
	}
	if refund, ok := errors.AsType[*reservation.RefundNeededError](err); ok {
		return &apiProblem{Status: http.StatusConflict, Reason: "refund_needed", State: refund.State, Detail: refund.Error()}
	}
	if many, ok := errors.AsType[*reservation.TooManyError](err); ok {
		return &apiProblem{Status: http.StatusConflict, Reason: "too_many", State: record.Confirmed, Detail: many.Error()}
	}
	switch {
	case errors.Is(err, reservation.ErrReused):
		return &apiProblem{Status: http.StatusUnprocessableEntity, Reason: "key_reused", Detail: "give each return an id of its own"}
	case errors.Is(err, reservation.ErrNotFound), errors.Is(err, shard.ErrNoSale):
		return &apiProblem{Status: http.StatusNotFound, Reason: "not_found", Detail: "redis knows no reservation by that id or ref"}
	}
	return nil
}
