package gate

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/bearer"
	"github.com/stockgate/stockgate/caddymodule/operation"
	"github.com/stockgate/stockgate/sale"
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

// env returns what a request's surroundings say. A dry run counts nothing.
func (g *Gate) env(r *http.Request, repl *caddy.Replacer, trial bool) attempt.Env {
	env := attempt.Env{}
	needs := g.reader.Needs()
	if needs.Has(attempt.NeedIP | attempt.NeedJWT) {
		env.ClientIP, _ = caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	}
	if needs.Has(attempt.NeedReplace) {
		env.Replace = func(text string) string { return repl.ReplaceAll(text, "") }
	}
	if needs.Has(attempt.NeedJWT) {
		ip := env.ClientIP
		env.Claims = func(token string) ([]byte, *sale.Refusal) {
			var limit bearer.Limit
			if !trial {
				limit = g.bearer.LimitFor(ip, time.Now())
			}
			return g.bearer.ClaimsOf(r.Context(), token, limit)
		}
	}
	return env
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

// notice says once that the buyer, or a quantity that the gate names, is never there.
func (g *Gate) notice(p *purchase) {
	if p.dryRun && !p.shadow {
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
