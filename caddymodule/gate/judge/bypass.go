package judge

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
)

// openBypass finds the bypass of the judge's name.
func (j *Judge) openBypass() {
	j.bypass = j.App.Bypass(j.Name)
	j.guarded.Bypassed = func() bool {
		if j.bypass.State() != app.BypassOn {
			return false
		}
		j.bypass.Passes()
		return true
	}
}

// Bypass is the bypass with the judge's name.
func (j *Judge) Bypass() *app.BypassSwitch { return j.bypass }

// IsBypassed reports whether the judge decides nothing now, for a fast path.
func (j *Judge) IsBypassed() bool { return j.bypass.State() != app.BypassOff }

// ServeBypassed hands on a request while orders pass without a reservation. Only headers that Stockgate alone may send are
// removed: the order has no token. It does not need Redis.
func (j *Judge) ServeBypassed(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	guard.StripReserved(r)
	attempt.StripH2C(r.Header)
	takeBack := guard.Decide(r)
	err := next.ServeHTTP(w, r)
	if err != nil {
		takeBack()
	}
	return err
}

// MayBeOrder reports whether a request is an attempt, or may be one. It leaves the body whole.
func (j *Judge) MayBeOrder(r *http.Request) bool {
	if j.filters.Operations == nil {
		return true
	}
	double := r.Clone(r.Context())
	if r.Body != nil && r.Body != http.NoBody {
		head, err := io.ReadAll(io.LimitReader(r.Body, j.filters.Reader.MaxBody()+1))
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
		if err != nil {
			return true
		}
		double.Body = io.NopCloser(bytes.NewReader(head))
	}
	body, no, err := j.filters.Reader.ReadBody(double)
	if no != nil || err != nil {
		return true
	}
	found := j.filters.Operations.Judge(double, body).Verdict
	return found == scope.Attempt || found == scope.Unclear
}

// constantSales returns the sales of a gate whose values name them; nil: it may sell any.
func (j *Judge) constantSales() []string {
	if slices.ContainsFunc(j.Sale, func(expr string) bool { return strings.Contains(expr, "{") }) {
		return nil
	}
	return j.Sale
}

// Bypassable returns what a bypass of a name is to be, and which gates and checks go on deciding. Without a name it is the
// only gate.
func (js *Judges) Bypassable(name string) (o app.BypassFor, deciding []string, err error) {
	all := js.List()
	if name == "" && len(all) > 0 {
		only, err := js.Find("")
		if err != nil {
			return o, nil, err
		}
		name = only.Name
	}
	o.Gate, o.Check = name, true
	any, found := false, false
	for _, j := range all {
		switch {
		case j.Name != name:
			if j.bypass.State() != app.BypassOn && !slices.Contains(deciding, j.Title()) {
				deciding = append(deciding, j.Title())
			}
			continue
		case j.InShadow:
			return o, nil, fmt.Errorf("%s is in shadow: it refuses nothing, so there is nothing to bypass", j.Title())
		}
		found = true
		if !j.OnlyChecks() {
			sales := j.constantSales()
			o.Check, any = false, any || sales == nil
			o.Sales = append(o.Sales, sales...)
		}
	}
	if any {
		o.Sales = nil
	}
	if !found {
		_, err = js.Find(name) // says which there are
		if err == nil {
			err = fmt.Errorf("no gate is named %.80q", name)
		}
	}
	return o, deciding, err
}
