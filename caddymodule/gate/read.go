package gate

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/bearer"
	"github.com/stockgate/stockgate/sale"
)

// Line is one line of an attempt.
type Line struct {
	// SKU gives the item.
	SKU []string `json:"sku"`
	// Quantity gives the number of units. Default: 1.
	Quantity []string `json:"quantity,omitempty"`
}

// LinesFrom reads the lines from an array of objects in a JSON body.
type LinesFrom struct {
	// Array is the placeholder of the array: {json.items}.
	Array string `json:"array"`
	// SKU is the field with the item.
	SKU string `json:"sku"`
	// Quantity is the field with the number of units. Default: 1 unit each.
	Quantity string `json:"quantity,omitempty"`
}

func (g *Gate) newReader(rates []attempt.RateKey) (*attempt.Reader, error) {
	if g.Body != "" && g.Body != "checked" && g.Body != "ignored" {
		return nil, fmt.Errorf("body %q: there are checked and ignored", g.Body)
	}
	if g.RefShared && len(g.Ref) == 0 {
		return nil, errors.New("ref_shared is given, and no ref")
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
	err := errors.Join(compile("sale", &spec.Sale, g.Sale), compile("buyer", &spec.Buyer, g.Buyer), compile("region", &spec.Region, g.Region),
		compile("ref", &spec.Ref, g.Ref), compile("idempotency", &spec.Key, g.Idempotency))
	for kind, exprs := range g.Identities {
		var values attempt.Values
		err = errors.Join(err, compile("identity "+kind, &values, exprs))
		spec.Identities[kind] = values
	}
	for _, l := range g.Lines {
		var line attempt.Line
		err = errors.Join(err, compile("line", &line.SKU, l.SKU), compile("line", &line.Quantity, l.Quantity))
		spec.Line = append(spec.Line, line)
	}
	if from := g.LinesFrom; from != nil {
		array, e := attempt.Compile(from.Array)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("lines: %w", e))
		}
		spec.Lines = &attempt.Lines{Array: array, SKU: from.SKU, Quantity: from.Quantity}
	}
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
