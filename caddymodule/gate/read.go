package gate

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

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/caddymodule/operation"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/scope"
)

func (g *Gate) newReader(rates []attempt.RateKey) (*attempt.Reader, error) {
	if g.Body != "" && g.Body != "checked" && g.Body != "ignored" {
		return nil, fmt.Errorf("body %q: there are checked and ignored", g.Body)
	}
	if g.RefShared && len(g.Ref) == 0 {
		return nil, errors.New("ref_shared is given, and no ref")
	}
	if g.Continue && (len(g.Ref) == 0 || g.RefShared || len(g.Idempotency) > 0) {
		return nil, errors.New("continue needs a `ref` that is not shared, and no `idempotency`: the ref names the hold that goes on")
	}
	spec := attempt.Spec{MaxBody: g.MaxBody, BodyIgnored: g.Body == "ignored", RefShared: g.RefShared, Rates: rates, Anonymous: g.Check, Identities: make(map[string]attempt.Values)}
	if g.JWT != nil {
		spec.Bearer = &attempt.Bearer{Cookie: g.JWT.Cookie}
	}
	compile := func(name string, into *attempt.Values, exprs []string) error {
		values, err := attempt.CompileAll(exprs...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*into = values
		return nil
	}
	if at := slices.IndexFunc(g.expressions(), operation.ByClient); at >= 0 && len(g.GraphQL) == 0 {
		return nil, fmt.Errorf("%s: it is an argument of an operation: name the field that has it, such as `graphql addItemsToOrder`", g.expressions()[at])
	}
	err := errors.Join(compile("sale", &spec.Sale, g.Sale), compile("buyer", &spec.Buyer, g.Buyer), compile("region", &spec.Region, g.Region),
		compile("ref", &spec.Ref, g.Ref), compile("idempotency", &spec.Key, g.Idempotency))
	for kind, exprs := range g.Identities {
		var values attempt.Values
		err = errors.Join(err, compile("identity "+kind, &values, exprs))
		spec.Identities[kind] = values
	}
	err = errors.Join(err, g.compileLines(&spec))
	if err != nil {
		return nil, err
	}
	return attempt.NewReader(spec)
}

// inScope finds out whether the request is an attempt. What is unclear is refused.
func (g *Gate) inScope(r *http.Request, p *purchase) (no *sale.Refusal, err error) {
	if g.onlyTurns() {
		p.scope = scope.Other
		no, _ = g.takeTurn(r, p)
		return no, nil
	}
	if g.scope == nil {
		p.scope = scope.Attempt
		return nil, nil
	}
	body, no, err := g.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	found := g.scope.Judge(r, body)
	switch p.scope = found.Verdict; found.Verdict {
	case scope.Attempt:
		p.operation = found
		operation.Publish(p.repl, found)
	case scope.Unclear:
		if !p.dryRun() {
			operation.CountUnclear(found.Cause)
		}
		return &sale.Refusal{Reason: sale.Malformed, Detail: found.Cause.Detail()}, nil
	case scope.Other:
		if found.Mutates {
			no, _ = g.takeTurn(r, p)
		}
	}
	return no, nil
}

// read reads the body and the attempt in it. Where the shop says what is in the cart, the rules that need
// no cart judge the attempt before the shop is asked.
func (g *Gate) read(r *http.Request, p *purchase) (*sale.Refusal, error) {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	no, err := g.readRequest(r, p)
	if err == nil && no == nil && g.lookup != nil {
		if no = g.walk(r, p, g.judging.beforeLookup); no == nil {
			no = g.readCart(r, p, g.recallCart(r, p))
		}
	}
	return g.haveRead(p, no), err
}

// readAgain reads the attempt with the cart that the shop has now.
func (g *Gate) readAgain(r *http.Request, p *purchase) *sale.Refusal {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	return g.haveRead(p, g.readCart(r, p, nil))
}

// readRequest reads what the request says.
func (g *Gate) readRequest(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if no := g.reader.Check(r); no != nil {
		return no, nil
	}
	if !g.Check && !p.clean { // else the request goes on as it came
		attempt.StripMethodOverride(r.Header)
	}
	body, no, err := g.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	p.body, p.attempt = body, &p.room
	env := g.env(r, p)
	if g.lookup == nil {
		p.room, no = g.reader.Read(r, body, env)
		if g.Check && g.passesOthers() && env.Argument != nil {
			g.dropUnlisted(p.attempt)
		}
		return no, nil
	}
	if p.reading, no = g.reader.ReadRequest(r, body, env); no == nil {
		p.room = p.reading.Early
	}
	return no, nil
}

// env returns what a request's surroundings say. A dry run counts nothing.
func (g *Gate) env(r *http.Request, p *purchase) attempt.Env {
	env := attempt.Env{}
	needs := g.reader.Needs()
	if needs.Has(attempt.NeedIP | attempt.NeedJWT) {
		env.ClientIP, _ = caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	}
	switch {
	case !needs.Has(attempt.NeedReplace):
	case p.purpose == watching:
		env.Replace = func(text string) string { return p.texts[text] }
	default:
		env.Replace = func(text string) string { return p.repl.ReplaceAll(text, "") }
	}
	if needs.Has(attempt.NeedJWT) {
		ip := env.ClientIP
		env.Claims = func(token string) (claims []byte, no *sale.Refusal) {
			claims, no = g.claims(r, p, ip, token)
			if g.lookup != nil {
				p.claims = claims
			}
			return claims, no
		}
	}
	if needs.Has(attempt.NeedArgument) {
		env.Argument = p.operation.List
	}
	return env
}

// claims verifies the buyer's token, and counts those of a client that are forged.
func (g *Gate) claims(r *http.Request, p *purchase, ip, token string) ([]byte, *sale.Refusal) {
	switch {
	case !p.asOf.IsZero():
		return g.bearer.ClaimsAt(r.Context(), token, nil, p.asOf)
	case p.dryRun():
		return g.bearer.ClaimsOf(r.Context(), token, nil)
	}
	return g.bearer.ClaimsOf(r.Context(), token, g.bearer.LimitFor(ip, time.Now()))
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
func (g *Gate) haveRead(p *purchase, no *sale.Refusal) *sale.Refusal {
	if no == nil || no.Reason == sale.NoBuyer {
		g.notice(p)
	}
	return no
}

// notice logs values that no attempt has.
func (g *Gate) notice(p *purchase) {
	if p.purpose == trying {
		return
	}
	if len(g.Buyer) > 0 && g.noBuyer.note(p.attempt.Buyer == "") {
		g.log.Warn("the buyer was empty in all 200 attempts: does the shop send it there, and does an authentication run before the gate?",
			zap.String("buyer", strings.Join(g.Buyer, " ")))
	}
	if len(p.attempt.Lines) > 0 && g.noQuantity.note(p.attempt.AssumedOne) {
		g.log.Warn("a quantity that the gate names was absent in all 200 attempts, and one unit was reserved for each line: if the shop reads the quantity elsewhere, it sells more than is reserved",
			zap.String("quantity", g.quantities()))
	}
}
