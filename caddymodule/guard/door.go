package guard

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/route"
	"github.com/stockgate/stockgate/internal/sale"
)

// Door is a way to the shop that is closed: a request that some server could read as one for it is
// refused, also where it comes to a gate.
type Door struct {
	// Match says which requests are for the door; one of the sets suffices. The matchers are those that
	// the guard can read as other servers do: method, host, path, path_regexp, query. Each set needs a
	// path or a query.
	Match caddyhttp.RawMatcherSets `json:"match" caddy:"namespace=http.matchers"`
	// Status of the answer. Default: 404.
	Status int `json:"status,omitempty"`
	// Style is problem (RFC 9457, the default) or body (Body).
	Style string `json:"style,omitempty"`
	// Body of the answer, as in the refusals of a gate.
	Body string `json:"body,omitempty"`

	sets caddyhttp.MatcherSets
	// gate stands for the door in the routes: no request comes to it, and what leads to it is refused.
	gate  Gate
	named []caddyfile.Token // matchers of the Caddyfile that are not resolved yet
	at    caddyfile.Dispenser
}

// doorMatchers are the matchers that decide in every reading of a request.
var doorMatchers = []string{"host", "method", "path", "path_regexp", "query"}

// whyClosed is for a request to a closed door.
const whyClosed = "this way to the shop is closed"

// provision prepares the door.
func (d *Door) provision(ctx caddy.Context, texts *refuse.Texts) error {
	if err := d.check(); err != nil {
		return err
	}
	loaded, err := ctx.LoadModule(d, "Match")
	if err == nil {
		err = d.sets.FromInterface(loaded)
	}
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	refuser, err := refuse.New([]refuse.Appearance{{Reasons: []string{string(sale.ClosedDoor)}, Status: d.Status, Style: d.Style, Body: d.Body}}, texts)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	d.gate = Gate{Name: "a closed door", Refuser: refuser, door: true}
	return nil
}

// check reports matchers that cannot close a door.
func (d *Door) check() error {
	if len(d.Match) == 0 {
		return errors.New("close: it names no request: write the paths that are closed, such as `close /api/orders`")
	}
	for _, set := range d.Match {
		for name := range set {
			if !slices.Contains(doorMatchers, name) {
				return fmt.Errorf("close: the matcher %s cannot close a door, because a client can write what it looks at in another way: there are %s", name, strings.Join(doorMatchers, ", "))
			}
		}
		if set["path"] == nil && set["path_regexp"] == nil && set["query"] == nil {
			return errors.New("close: a matcher without path and query would close the whole site: name the path, such as `close /api/orders`")
		}
	}
	return nil
}

// doorSteps are the doors as routes, for readings only.
func (s *Routes) doorSteps(doors []*Door) (steps []gateStep) {
	for _, d := range doors {
		s.methods = append(s.methods, setMethods(d.sets))
		s.closed = append(s.closed, setMethods(d.sets))
		steps = append(steps, gateStep{loose: s.loosen(d.sets), door: true, acts: []gateAct{{gate: &gateVisit{Gate: &d.gate, reads: true}}}})
		for i := range s.queries { // the shop takes them for a path, whatever that is
			s.queries[i].gates = append(s.queries[i].gates, &d.gate)
		}
	}
	return steps
}

// closes reports whether a door could be closed to a request with this method.
func (s *Routes) closes(method string) bool {
	return slices.ContainsFunc(s.closed, func(some []string) bool { return some == nil || slices.Contains(some, method) })
}

// searchDoors asks the doors about a request that all servers read alike and whose query decides nothing.
func (s *Routes) searchDoors(double *reading, asked target, path string) (why string, door *Gate) {
	path = decodedPath(asked.url, path)
	for _, p := range [2]string{path, route.OtherSlash(path)} {
		double.Method, double.URL = asked.method, &url.URL{Path: p}
		for i := range s.doors {
			if looseMatch(s.steps[i].loose, double) != no {
				return whyClosed, &s.doors[i].gate
			}
		}
	}
	return "", nil
}

const closeUsage = "close <path|@matcher...> [<status> [<body>]]"

// readClose reads the option close.
func (g *Guard) readClose(d *caddyfile.Dispenser, usage string) error {
	args, door, paths := d.RemainingArgs(), new(Door), []string(nil)
	door.at = *d
	for len(args) > 0 && args[0] != "" && (args[0][0] == '/' || args[0][0] == '@') {
		if args[0][0] == '/' {
			paths = append(paths, args[0])
		} else {
			door.named = append(door.named, caddyfile.Token{Text: args[0], File: d.File(), Line: d.Line()})
		}
		args = args[1:]
	}
	if len(paths)+len(door.named) == 0 {
		return d.Errf("close names no path that begins with / and no matcher: write `%s`", usage)
	}
	if len(args) > 0 {
		answer, err := directive.Answer(d, "close", usage, args)
		if err != nil {
			return err
		}
		door.Status, door.Style, door.Body = answer.Status, answer.Style, answer.Body
	}
	if len(paths) > 0 {
		door.Match = caddyhttp.RawMatcherSets{{"path": caddyconfig.JSON(paths, nil)}}
	}
	g.Close = append(g.Close, door)
	return nil
}

// resolve fills in the matchers that the Caddyfile names.
func (d *Door) resolve(h httpcaddyfile.Helper) error {
	for _, name := range d.named {
		at := caddyfile.NewDispenser([]caddyfile.Token{name})
		set, _, err := h.WithDispenser(at).MatcherToken()
		if err != nil {
			return at.WrapErr(fmt.Errorf("close %s: %w: define that matcher in the site", name.Text, err))
		}
		d.Match = append(d.Match, set)
	}
	d.named = nil
	if err := d.check(); err != nil {
		return d.at.WrapErr(err)
	}
	return nil
}
