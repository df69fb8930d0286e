// Package probe is the gate's option in_doubt: it asks the shop whether it has the order of a
// hold that is in doubt.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// probeAtOnce is the number of requests that one gate may have under way on one edge.
	probeAtOnce = 8
	// probeBody is how many bytes of an answer are read.
	probeBody = 64 << 10
)

// Probe asks the shop whether it has an order.
type Probe struct {
	gate    string
	url     *shopurl.URL
	rules   *outcome.Rules
	header  http.Header
	plan    reservation.ProbePlan
	timeout time.Duration
	client  *http.Client
	log     *zap.Logger
}

// errNotAsked means that there is no URL for this hold.
var errNotAsked = errors.New("the hold has no ref, or one that cannot stand in the URL's path")

// errTwoBuyers means that the shop's answer could be about the order of another buyer.
var errTwoBuyers = fmt.Errorf("%w: several buyers have used this ref", errNotAsked)

// errOfAnother means that the shop's answer would be about the order of another reservation.
var errOfAnother = fmt.Errorf("%w: another reservation has this ref now", errNotAsked)

// AskAbout is ask, but does not ask by ref alone if several buyers have used that ref, or if the
// reservation has ended and another one has its ref. The error wraps shard.ErrUnavailable if Redis
// does not say which reservations have the ref.
func (p *Probe) AskAbout(ctx context.Context, store *reservation.Store, sale string, due reservation.ProbeDue) (reservation.ProbeAnswer, string, error) {
	if due.Ref != "" && p.url.Has("ref") && !p.url.Has("id") {
		lookup, cancel := context.WithTimeout(ctx, p.timeout)
		found, err := store.Named(lookup, sale, []string{due.Ref})
		cancel()
		switch f := found[due.Ref]; {
		case err != nil:
			return reservation.ProbeUnknown, "", err
		case f != nil && (f.More || len(f.Records) > 1):
			return reservation.ProbeUnknown, "", errTwoBuyers
		case f != nil && len(f.Records) == 1 && f.Records[0].ID != due.ID:
			return reservation.ProbeUnknown, "", errOfAnother
		}
	}
	return p.ask(ctx, due)
}

// ask asks about one hold. cause is the status of the answer. With an error, or if no rule
// matches the answer, it returns ProbeUnknown.
func (p *Probe) ask(ctx context.Context, due reservation.ProbeDue) (v reservation.ProbeAnswer, cause string, err error) {
	at, ok := fillProbeURL(p.url, due.ID, due.Ref)
	if !ok {
		return reservation.ProbeUnknown, "", errNotAsked
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return reservation.ProbeUnknown, "", errNotAsked
	}
	request.Header = p.header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		return reservation.ProbeUnknown, "", withoutURL(err)
	}
	defer response.Body.Close()
	// The body is read even if no rule needs it: the connection is then reused, and an
	// incomplete answer does not count.
	body, err := io.ReadAll(io.LimitReader(response.Body, probeBody+1))
	if err != nil {
		return reservation.ProbeUnknown, "", withoutURL(err)
	}
	r := &outcome.Reply{Status: response.StatusCode, Header: response.Header, Body: body, Whole: len(body) <= probeBody, Ref: due.Ref}
	cause = "probe_" + outcome.StatusCause(r.Status)
	switch p.rules.Decide(r) {
	case outcome.Confirm:
		return reservation.ProbePresent, cause, nil
	case outcome.Release:
		return reservation.ProbeAbsent, cause, nil
	default:
		return reservation.ProbeUnknown, cause, nil
	}
}

// withoutURL removes the URL from an error, because it contains the ref.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// Host returns the host of the probe's URL.
func (p *Probe) Host() string { return p.url.Host }

// compileProbeURL reads a URL with {id}, {ref} or both in its path or query.
func compileProbeURL(text string) (*shopurl.URL, error) {
	u, err := shopurl.Compile("the probe", text, func(name string) bool { return name == "id" || name == "ref" }, "{id}, {ref}")
	if err == nil && !u.HasAny() {
		return nil, errors.New("the URL of the probe names no order: put {id} (the reservation) or {ref} (the shop's own name of the order) into its path or query")
	}
	return u, err
}

// fillProbeURL makes the URL for one reservation; false: there is none for it.
func fillProbeURL(u *shopurl.URL, id, ref string) (string, bool) {
	return u.Fill(func(name string) string {
		if name == "id" {
			return id
		}
		return ref
	})
}
