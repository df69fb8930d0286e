// Package probe is the gate's option in_doubt: it asks the shop whether it has the order of a
// hold that is in doubt.
package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// probeAtOnce is the number of requests that one gate may have under way on one edge.
	probeAtOnce = 8
	// maxHeader bounds the header of an answer in bytes.
	maxHeader = 64 << 10
)

// Probe asks the shop whether it has an order.
type Probe struct {
	gate    string
	method  string
	url     *shopurl.URL
	body    *shopurl.Body
	rules   *outcome.Rules
	header  http.Header
	plan    reservation.ProbePlan
	timeout time.Duration
	client  *http.Client
	log     *zap.Logger

	maxAnswer int // bytes
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
	if due.Ref != "" && p.has("ref") && !p.has("id") {
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
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, ok := p.request(ctx, due)
	if !ok {
		return reservation.ProbeUnknown, "", errNotAsked
	}
	response, err := p.client.Do(request)
	if err != nil {
		return reservation.ProbeUnknown, "", withoutURL(err)
	}
	defer response.Body.Close()
	// The body is read even if no rule needs it: the connection is then reused, and an
	// incomplete answer does not count.
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(p.maxAnswer)+1))
	if err != nil {
		return reservation.ProbeUnknown, "", withoutURL(err)
	}
	r := &outcome.ShopAnswer{Status: response.StatusCode, Header: response.Header, Body: body, Whole: len(body) <= p.maxAnswer, MaxBody: p.maxAnswer, Ref: due.Ref}
	cause = "probe_" + outcome.StatusCause(r.Status)
	switch p.rules.Decide(r) {
	case outcome.Confirm:
		return reservation.ProbePresent, cause, nil
	case outcome.Release:
		return reservation.ProbeAbsent, cause, nil
	default:
		if why := p.rules.Unmatched(r); why != "" {
			cause = "probe_" + why
		}
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

// compileQuestion reads the URL and the body of the question: {id}, {ref} or both name the order.
func (p *Probe) compileQuestion(d *InDoubt, g *Gate) (err error) {
	has := func(name string) bool { return name == "id" || name == "ref" }
	p.method = cmp.Or(d.Method, http.MethodGet)
	if p.url, err = shopurl.Compile("the probe", d.Probe, has, "{id}, {ref}"); err != nil {
		return fmt.Errorf("in_doubt: %w", err)
	}
	if p.body, err = shopurl.CompileBody("the probe", d.Body, has); err != nil {
		return fmt.Errorf("in_doubt: %w", err)
	}
	switch {
	case !p.has("id") && !p.has("ref"):
		return errors.New("in_doubt: the probe names no order: put {id} (the reservation) or {ref} (the shop's own name of the order) into the path or the query of its URL, or into its body")
	case p.has("ref") && !g.ByRef:
		return errors.New("in_doubt: the probe has {ref}, and the gate has no ref: say where the shop's name of the order is found, such as `ref {json.order_no}`")
	}
	return nil
}

// has reports whether the question has a placeholder.
func (p *Probe) has(name string) bool {
	return p.url.Has(name) || slices.Contains(slices.Collect(p.body.Names), name)
}

// request makes the question about one reservation; false: there is none for it.
func (p *Probe) request(ctx context.Context, due reservation.ProbeDue) (*http.Request, bool) {
	values := func(name string) string {
		if name == "id" {
			return due.ID
		}
		return due.Ref
	}
	at, ok := p.url.Fill(values)
	body, filled := p.body.Fill(values)
	if !ok || !filled {
		return nil, false
	}
	request, err := http.NewRequestWithContext(ctx, p.method, at, bytes.NewReader(body))
	if err != nil {
		return nil, false
	}
	request.Header = p.header.Clone()
	shopurl.Repeatable(request)
	if body != nil && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, true
}
