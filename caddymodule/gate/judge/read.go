package judge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

func (j *Judge) newReader(rates []attempt.RateKey) (*attempt.Reader, error) {
	if j.Body != "" && j.Body != "checked" && j.Body != "ignored" {
		return nil, fmt.Errorf("body %q: there are checked and ignored", j.Body)
	}
	rules, err := j.app.IdentityRules()
	if err != nil {
		return nil, err
	}
	spec := attempt.Spec{Rules: rules, MaxBody: j.MaxBody, BodyIgnored: j.Body == "ignored", RefShared: j.RefShared, Rates: rates, Anonymous: j.OnlyChecks(), Identities: make(map[string]attempt.Values)}
	if len(j.JWT) > 0 {
		if err := j.JWT.Check(); err != nil {
			return nil, fmt.Errorf("jwt: %w", err)
		}
		spec.Bearer = &attempt.Bearer{Cookie: j.JWT.Cookie()}
	}
	compile := func(name string, into *attempt.Values, exprs []string) error {
		values, err := attempt.CompileAll(exprs...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*into = values
		return nil
	}
	if at := slices.IndexFunc(j.expressions(), operation.ByClient); at >= 0 && len(j.GraphQL) == 0 {
		return nil, fmt.Errorf("%s: it is an argument of an operation: name the field that has it, such as `graphql addItemsToOrder`", j.expressions()[at])
	}
	err = errors.Join(compile("sale", &spec.Sale, j.Sale), compile("buyer", &spec.Buyer, j.Buyer), compile("region", &spec.Region, j.Region),
		compile("ref", &spec.Ref, j.Ref), compile("idempotency", &spec.Key, j.Idempotency))
	for kind, exprs := range j.Identities {
		var values attempt.Values
		err = errors.Join(err, compile("identity "+kind, &values, exprs))
		spec.Identities[kind] = values
	}
	err = errors.Join(err, j.compileLines(&spec))
	if err != nil {
		return nil, err
	}
	return attempt.NewReader(spec)
}

// InScope finds out whether the request is an attempt. It refuses an unclear one.
func (j *Judge) InScope(r *http.Request, p *Case) (no *sale.Refusal, err error) {
	if j.onlyTurns() {
		p.Scope = scope.Other
		return j.passAlone(r, p), nil
	}
	if j.scope == nil {
		p.Scope = scope.Attempt
		return nil, nil
	}
	body, no, err := j.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	found := j.scope.Judge(r, body)
	switch p.Scope = found.Verdict; found.Verdict {
	case scope.Attempt:
		p.operation = found
		operation.Publish(p.Repl, found)
	case scope.Unclear:
		if !p.dryRun() {
			operation.CountUnclear(found.Cause)
		}
		return &sale.Refusal{Reason: sale.Malformed, Detail: found.Cause.Detail()}, nil
	case scope.Other:
		if found.Mutates {
			no = j.passAlone(r, p)
		}
	}
	return no, nil
}

// Read reads the body and the attempt in it. With a lookup, the rules that need no cart judge the attempt before the shop is asked.
func (j *Judge) Read(r *http.Request, p *Case) (*sale.Refusal, error) {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	no, err := j.ReadRequest(r, p)
	if err == nil && no == nil && j.lookup != nil {
		if no = j.walk(r, p, j.rules.beforeLookup); no == nil {
			no = j.ReadCart(r, p, j.recallCart(r, p))
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
	if no := j.reader.Check(r); no != nil {
		return no, nil
	}
	if !j.OnlyChecks() && !p.clean { // else the request goes on as it came
		attempt.StripMethodOverride(r.Header)
	}
	body, no, err := j.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	p.Body, p.Attempt = body, &p.room
	env := j.env(r, p)
	if j.lookup == nil {
		p.room, no = j.reader.Read(r, body, env)
		if j.OnlyChecks() && j.passesOthers() && (env.Argument != nil || j.Enters) {
			j.dropUnlisted(p.Attempt)
		}
		return no, nil
	}
	if p.reading, no = j.reader.ReadRequest(r, body, env); no == nil {
		p.room = p.reading.Early
	}
	return no, nil
}

// env returns what a request's surroundings say. A dry run counts nothing.
func (j *Judge) env(r *http.Request, p *Case) attempt.Env {
	env := attempt.Env{}
	needs := j.reader.Needs()
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
		return j.bearer.ClaimsAt(r.Context(), token, nil, p.AsOf)
	case p.dryRun():
		return j.bearer.ClaimsOf(r.Context(), token, nil)
	}
	return j.bearer.ClaimsOf(r.Context(), token, j.bearer.LimitFor(ip, time.Now()))
}

// silentAfter is the number of attempts without a value after which a gate says that its
// configuration probably reads the wrong place.
const silentAfter = 200

// silence notices a value that the first attempts of a gate all lack. It costs one atomic load
// once it is settled.
type silence struct {
	settled atomic.Bool
	seen    atomic.Int32
}

// note counts an attempt. It returns true once: when all of the first silentAfter attempts
// lacked the value.
func (s *silence) note(lacks bool) bool {
	if s.settled.Load() {
		return false
	}
	if !lacks {
		s.settled.Store(true)
		return false
	}
	if s.seen.Add(1) != silentAfter {
		return false
	}
	return !s.settled.Swap(true)
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
	if len(j.Buyer) > 0 && j.noBuyer.note(p.Attempt.Buyer == "") {
		j.log.Warn("the buyer was empty in all 200 attempts: does the shop send it there, and does an authentication run before the gate?",
			zap.String("buyer", strings.Join(j.Buyer, " ")))
	}
	if len(p.Attempt.Lines) > 0 && j.noQuantity.note(p.Attempt.AssumedOne) {
		j.log.Warn("a quantity that the gate names was absent in all 200 attempts, and one unit was reserved for each line: if the shop reads the quantity elsewhere, it sells more than is reserved",
			zap.String("quantity", j.Quantities()))
	}
}
