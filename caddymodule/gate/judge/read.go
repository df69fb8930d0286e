package judge

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

// InScope finds out whether the request is an attempt. It refuses an unclear one.
func (j *Judge) InScope(r *http.Request, p *Case) (no *sale.Refusal, err error) {
	if j.OnlyTurns() {
		p.Scope = scope.Other
		return j.clerk.PassAlone(r, p.visitor()), nil
	}
	if j.filters.Operations == nil {
		p.Scope = scope.Attempt
		return nil, nil
	}
	body, no, err := j.filters.Reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	found := j.filters.Operations.Find(r, body, p.Repl, p.dryRun())
	switch p.Scope = found.Verdict; found.Verdict {
	case scope.Attempt:
		p.operation = found
	case scope.Unclear:
		return &sale.Refusal{Reason: sale.Malformed, Detail: found.Cause.Detail()}, nil
	case scope.Other:
		if found.Mutates {
			no = j.clerk.PassAlone(r, p.visitor())
		}
	}
	return no, nil
}

// Read reads the body and the attempt in it. With a lookup, the rules that need no cart judge the attempt before the shop is asked.
func (j *Judge) Read(r *http.Request, p *Case) (*sale.Refusal, error) {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	no, err := j.ReadRequest(r, p)
	if err == nil && no == nil && j.filters.Lookup != nil {
		if no = j.walk(r, p, j.rules.beforeLookup); no == nil {
			no = j.ReadCart(r, p, j.clerk.Recall(r, p.visitor()))
		}
	}
	return j.haveRead(p, no), err
}

// readAgain reads the attempt with the cart that the shop has now.
func (j *Judge) readAgain(r *http.Request, p *Case) *sale.Refusal {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	return j.haveRead(p, j.ReadCart(r, p, nil))
}

// ReadRequest reads what the request says.
func (j *Judge) ReadRequest(r *http.Request, p *Case) (*sale.Refusal, error) {
	if no := j.filters.Reader.Check(r); no != nil {
		return no, nil
	}
	if !j.OnlyChecks() && !p.clean { // else the request goes on as it came
		attempt.StripMethodOverride(r.Header)
	}
	body, no, err := j.filters.Reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	p.Body, p.Attempt = body, &p.room
	env := j.env(r, p)
	if j.filters.Lookup == nil {
		p.room, no = j.filters.Reader.Read(r, body, env)
		if j.OnlyChecks() && j.passesOthers() && (env.Argument != nil || j.Enters) {
			j.dropUnlisted(p.Attempt)
		}
		return no, nil
	}
	if p.reading, no = j.filters.Reader.ReadRequest(r, body, env); no == nil {
		p.room = p.reading.Early
	}
	return no, nil
}

// env returns what a request's surroundings say. A dry run counts nothing.
func (j *Judge) env(r *http.Request, p *Case) attempt.Env {
	env := attempt.Env{}
	needs := j.filters.Reader.Needs()
	if needs.Has(attempt.NeedIP | attempt.NeedJWT) {
		env.ClientIP, _ = caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	}
	switch {
	case !needs.Has(attempt.NeedReplace):
	case p.Purpose == Watching:
		env.Replace = func(text string) string { return p.Texts[text] }
	default:
		env.Replace = func(text string) string { return p.Repl.ReplaceAll(text, "") }
	}
	if needs.Has(attempt.NeedJWT) {
		ip := env.ClientIP
		env.Claims = func(token string) (claims []byte, no *sale.Refusal) {
			claims, no = j.claims(r, p, ip, token)
			p.Claims = claims
			return claims, no
		}
	}
	if needs.Has(attempt.NeedArgument) {
		env.Argument = p.operation.List
	}
	return env
}

// claims verifies the buyer's token, and counts those of a client that are forged.
func (j *Judge) claims(r *http.Request, p *Case, ip, token string) ([]byte, *sale.Refusal) {
	switch {
	case !p.AsOf.IsZero():
		return j.filters.Bearer.ClaimsAt(r.Context(), token, nil, p.AsOf)
	case p.dryRun():
		return j.filters.Bearer.ClaimsOf(r.Context(), token, nil)
	}
	return j.filters.Bearer.ClaimsOf(r.Context(), token, j.filters.Bearer.LimitFor(ip, time.Now()))
}

// haveRead says in the log, once, that the buyer, or a quantity that the gate names, is never there. no is
// the refusal of the attempt that was read.
func (j *Judge) haveRead(p *Case, no *sale.Refusal) *sale.Refusal {
	if no == nil || no.Reason == sale.NoBuyer {
		j.notice(p)
	}
	return no
}

// notice logs values that no attempt has.
func (j *Judge) notice(p *Case) {
	if p.Purpose == Trying {
		return
	}
	if len(j.Buyer) > 0 && j.noBuyer.Note(p.Attempt.Buyer == "") {
		j.log.Warn("the buyer was empty in all 200 attempts: does the shop send it there, and does an authentication run before the gate?",
			zap.String("buyer", strings.Join(j.Buyer, " ")))
	}
	if len(p.Attempt.Lines) > 0 && j.noQuantity.Note(p.Attempt.AssumedOne) {
		j.log.Warn("a quantity that the gate names was absent in all 200 attempts, and one unit was reserved for each line: if the shop reads the quantity elsewhere, it sells more than is reserved",
			zap.String("quantity", j.Quantities()))
	}
}
