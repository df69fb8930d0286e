// Package pow is the gate's option challenge: it asks for a proof of work in a rush.
package pow

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/challenge"
)

// Challenge asks for a proof of work before an attempt may cost anything, while more
// attempts come to the gate than usual. The work is to find a SHA-256 hash that begins with
// a number of zero bits (examples/challenge/solve.py has the format). An attempt without a solution
// is refused as challenge, with a task. Tasks are bound to gate, sale, minute and the
// client's address (the /64 of an IPv6 address); each solution is valid for one attempt on
// each edge.
//
// Counts and spent solutions survive a reload, as long as the gate's name and these options
// stay the same. Gates with the same name, or without one, count equal challenges together.
type Challenge struct {
	// Kind is pow.
	Kind string `json:"kind"`
	// Above is how many attempts pass an edge without work: 1 to 1,000,000 in 100ms to 1h. Default: `200 1s`.
	Above int `json:"above,omitempty"`
	// Window is the time for Above, 100ms to 1h. Default: 1s.
	Window caddy.Duration `json:"window,omitempty"`
	// LeastBits is the work just above that rate, and the most, 4 to 28; each doubling of the rate adds a bit. A client
	// makes 2^bits hashes on average. Default: `12 20`.
	LeastBits int `json:"least_bits,omitempty"`
	// MostBits bounds the work. Default: 20, or LeastBits if that is more.
	MostBits int `json:"most_bits,omitempty"`
	// Header has the solution; not `Stockgate-*`. Default: `Challenge-Solution`.
	Header string `json:"header,omitempty"`
	// Cookie has the solution where there is no such header. Default: none.
	Cookie string `json:"cookie,omitempty"`
}

const (
	defaultAbove          = 200
	maxAbove              = 1_000_000
	defaultWindow         = time.Second
	leastWindow           = 100 * time.Millisecond
	mostWindow            = time.Hour
	defaultLeastBits      = 12
	defaultMostBits       = 20
	defaultSolutionHeader = "Challenge-Solution"
)

var cookieName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check sets the defaults and validates the options.
func (c *Challenge) check() error {
	if c.Above == 0 {
		c.Above = defaultAbove
	}
	if c.Window == 0 {
		c.Window = caddy.Duration(defaultWindow)
	}
	if c.LeastBits == 0 {
		c.LeastBits = defaultLeastBits
	}
	if c.MostBits == 0 {
		c.MostBits = max(defaultMostBits, c.LeastBits)
	}
	if c.Header == "" {
		c.Header = defaultSolutionHeader
	}
	window := time.Duration(c.Window)
	switch {
	case c.Kind != "pow":
		return fmt.Errorf("kind %q: there is pow", c.Kind)
	case c.Above < 1 || c.Above > maxAbove:
		return fmt.Errorf("%d attempts are outside 1 to %d", c.Above, maxAbove)
	case window < leastWindow || window > mostWindow:
		return fmt.Errorf("the window %v is outside %v to %v", window, leastWindow, mostWindow)
	case c.LeastBits < challenge.LeastBits || c.MostBits > challenge.MostBits || c.LeastBits > c.MostBits:
		return fmt.Errorf("bits from %d to %d: write the least first, within %d to %d", c.LeastBits, c.MostBits, challenge.LeastBits, challenge.MostBits)
	case attempt.Strippable(c.Header):
		return fmt.Errorf("the header %s is one that stockgate_guard removes: take another name, such as %s", c.Header, defaultSolutionHeader)
	case c.Cookie != "" && !cookieName.MatchString(c.Cookie):
		return fmt.Errorf("the cookie %q is no name of letters, digits, underscores and hyphens", c.Cookie)
	}
	return nil
}

// Challenger is the challenge of a provisioned gate.
type Challenger struct {
	*challenge.Challenger        // nil: there is none
	Scope                 string // of the gate
	Gate                  string // its name; empty: it has none
	header, cookie        string
	pooled                string // key of the entry of challengers to release
}

// challengers are shared by the configurations that exist at the same time, and so survive
// a reload.
var challengers = caddy.NewUsagePool()

type challenger struct{ *challenge.Challenger }

// Destruct is called when no configuration has the challenge anymore.
func (challenger) Destruct() error { return nil }

// Open takes the challenger of a gate from the pool, or makes it; c is nil if the gate has
// none.
func (gc *Challenger) Open(c *Challenge, gate string, onlyChecks bool) error {
	if c == nil {
		return nil
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("challenge: %w", err)
	}
	scope := "order " + gate
	if onlyChecks { // whose solutions must not be spent before the order
		scope = "check " + gate
	}
	print := fmt.Sprintf("%q %d %v %d %d", scope, c.Above, c.Window, c.LeastBits, c.MostBits)
	v, _, err := challengers.LoadOrNew(print, func() (caddy.Destructor, error) {
		return challenger{challenge.New(challenge.Policy{
			Above: uint32(c.Above), Window: time.Duration(c.Window), Least: c.LeastBits, Most: c.MostBits,
		})}, nil
	})
	if err != nil {
		return err
	}
	*gc = Challenger{v.(challenger).Challenger, scope, gate, http.CanonicalHeaderKey(c.Header), c.Cookie, print}
	return nil
}

// Close releases the challenger. Requests that are still running keep it.
func (c *Challenger) Close() error {
	key := c.pooled
	if key == "" {
		return nil
	}
	c.pooled = ""
	_, err := challengers.Delete(key)
	return err
}

// solution returns what the client sends; empty: nothing, or two headers.
func (c *Challenger) solution(h http.Header) string {
	if values := h[c.header]; len(values) > 0 || c.cookie == "" {
		if len(values) != 1 {
			return ""
		}
		return values[0]
	}
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && name == c.cookie {
				return value
			}
		}
	}
	return ""
}
