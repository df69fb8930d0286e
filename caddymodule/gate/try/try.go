package try

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/internal/saved"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/scope"
)

const (
	noteMatcher = "the matcher is not evaluated: it stands outside of the gate, as stockgate_guard and every other directive do"
	noteOptions = "OPTIONS is never an attempt: without a body and another method in its query it passes the gate, without its query"
	noteAnswers = "OPTIONS is never an attempt: the edge answers it with 204, because the shop could take it for an order; add `method POST` to the gate's matcher, and it goes to the shop"
	noteOther   = "the request is no attempt by the gate's graphql or json_body: it passes untouched"
	noteUnknown = "the request has only the hash of a persisted query that this edge has not seen: it is answered with PersistedQueryNotFound, and the client sends the document"
	noteLong    = "a rule tests the body, of which only the first 64 KiB are looked at: it does not match"
	noteMore    = "a rule tests an element of an array that has more elements than the rules read: the answer decides nothing"
)

// Try asks a judge what it would do. The request goes through it as far as a request that
// is refused.
func Try(ctx context.Context, j *judge.Judge, t *adminapi.TryRequest) (*adminapi.TryAnswer, error) {
	out := &adminapi.TryAnswer{Gate: j.Name, Check: j.OnlyChecks(), Notes: []string{noteMatcher}}
	if len(t.Answer) > 0 {
		if j.OnlyChecks() {
			return nil, request.Bad("this gate only checks: it never sees an answer of the shop")
		}
		if err := tryAnswer(j.Seller().(*gate.Gate), t.Answer, out); err != nil {
			return nil, err
		}
	}
	r, repl, err := savedRequest(ctx, j, t)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodOptions {
		note := noteOptions
		if j.AnswersOptions() {
			note = noteAnswers
		}
		out.Notes = append(out.Notes, note)
		no, err := j.CheckOptions(r)
		if err != nil {
			return nil, request.Bad("the request's body cannot be read: %w", err)
		}
		if out.Passes = no == nil; no != nil {
			out.Refusal = j.Refuser().Problem(r, no)
		}
		return out, nil
	}
	v := judge.Visit{Purpose: judge.Trying, Repl: repl}
	p := &judge.Case{Visit: v}
	if seller := j.Seller(); seller != nil {
		p = seller.Begin(v)
	}
	no, err := j.Consider(r, p)
	if err != nil {
		return nil, request.Bad("the request's body cannot be read: %w", err)
	}
	switch p.Scope {
	case scope.Other:
		out.Notes = append(out.Notes, noteOther)
	case scope.Unknown:
		out.Notes = append(out.Notes, noteUnknown)
	}
	out.Passes = no == nil && p.Scope != scope.Unknown
	if no != nil {
		out.Refusal = j.Refuser().Problem(r, no)
	}
	describe(out, p)
	if p.Attempt != nil && p.Attempt.AssumedOne {
		out.Notes = append(out.Notes, "the request has no quantity at "+j.Quantities()+": one unit is assumed")
	}
	for _, empty := range unset(j, repl) {
		out.Notes = append(out.Notes, empty+" is empty here: if a directive outside of the gate sets it, say what to")
	}
	return out, nil
}

// describe reports what was read from an attempt.
func describe(out *adminapi.TryAnswer, p *judge.Case) {
	if p.Attempt != nil {
		out.Buyer, out.Identities, out.Region = p.Attempt.Buyer, p.Attempt.Identities, p.Attempt.Region
		out.Sale, out.Lines, out.Ref = p.Attempt.Sale, p.Attempt.Lines, p.Attempt.Ref
	}
	if p.Lines != nil {
		out.Lines = p.Lines
	}
	out.Unlisted = p.Unlisted
	if p.Listing != nil {
		out.Sale, out.SaleStatus = p.Listing.Sale.ID, p.Listing.Status
	}
	if p.Earlier != nil {
		out.Reservation, out.Replayed = p.Earlier.Found()
	}
}

// tryAnswer applies the rules to an answer of the shop.
func tryAnswer(g *gate.Gate, raw []byte, out *adminapi.TryAnswer) error {
	reader := bufio.NewReader(bytes.NewReader(raw))
	// the answer to a HEAD has no body, so this reads the head and leaves the rest
	resp, err := http.ReadResponse(reader, &http.Request{Method: http.MethodHead})
	if err != nil {
		return request.Bad("the answer is not an HTTP/1.1 response: %w", err)
	}
	if resp.StatusCode < 200 {
		return request.Bad("the answer has the status %d: save the final one", resp.StatusCode)
	}
	body, err := saved.Body(reader, resp.Header, resp.TransferEncoding)
	if err != nil {
		return request.Bad("the answer: %w", err)
	}
	answer := &outcome.ShopAnswer{Status: resp.StatusCode, Header: resp.Header, Body: body, Whole: true, MaxBody: g.Terms().AnswerLimit()}
	if most := answer.MaxBody; len(body) > most {
		answer.Body, answer.Whole = body[:most], false
	}
	v, by, word := g.Terms().Outcomes.Match(answer)
	if v == outcome.Undecided {
		v = g.Terms().Outcomes.Otherwise
		note := noteLong
		if _, problem := answer.Plain(); problem == "" {
			note = noteMore
		}
		out.Notes = append(out.Notes, note)
	}
	if by == "" {
		if note := unmatchedNote(g.Terms().Outcomes.Unmatched(answer)); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	out.Answer = &adminapi.TryOutcome{Status: resp.StatusCode, Outcome: v.String()}
	out.Answer.Rule, out.Answer.Matched = by, word
	return nil
}

// unmatchedNote says why no rule matches an answer; empty: by its status and values.
func unmatchedNote(cause string) string {
	path, missing := strings.CutPrefix(cause, outcome.CauseMissing)
	switch {
	case missing:
		return "no rule matches: the answer has no value at " + path
	case cause == string(outcome.CauseNotJSON):
		return "no rule matches: the answer's body is not one JSON document"
	case cause == string(outcome.CauseEncoded):
		return "no rule matches: the answer's Content-Encoding is not undone here, or its body is broken: the edge asks for none, so find out what compresses it, and let it keep to Accept-Encoding"
	}
	return ""
}

// savedRequest turns a saved request into what Caddy's server would pass to the gate.
func savedRequest(ctx context.Context, j *judge.Judge, t *adminapi.TryRequest) (*http.Request, *caddy.Replacer, error) {
	r, body, err := saved.Request(t.Request)
	if err != nil {
		return nil, nil, request.Bad("%w", err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for name := range r.Header { // as Caddy's server drops them
		if strings.ContainsAny(name, "_.") {
			delete(r.Header, name)
		}
	}
	from := t.From
	if from == "" {
		from = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(from); err != nil {
		return nil, nil, request.Bad("%.80q is no IP address to come from", from)
	}
	r.RemoteAddr = net.JoinHostPort(from, "0")
	guard.StripReserved(r)
	repl := caddy.NewReplacer()
	r = caddyhttp.PrepareRequest(r.WithContext(ctx), repl, nil, judge.CaddyServer(j))
	for name, value := range t.Placeholders {
		repl.Set(strings.Trim(name, "{}"), value)
	}
	return r, repl, nil
}

// unset lists the gate's placeholders that have no value and that only directives outside
// the gate set.
func unset(j *judge.Judge, repl *caddy.Replacer) []string {
	var empty []string
	for _, expr := range j.Values() {
		v, err := attempt.Compile(expr)
		if err == nil && v.Kind() == attempt.Text && !slices.Contains(empty, expr) && repl.ReplaceAll(expr, "") == "" {
			empty = append(empty, expr)
		}
	}
	slices.Sort(empty)
	return empty
}
