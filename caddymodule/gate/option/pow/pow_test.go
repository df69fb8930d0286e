package pow

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Options that a configuration in JSON omits have the documented defaults.
func TestChallengeDefaults(t *testing.T) {
	for _, c := range []struct{ given, want Challenge }{
		{Challenge{Kind: "pow"}, Challenge{"pow", 200, caddy.Duration(time.Second), 12, 20, "Challenge-Solution", ""}},
		{Challenge{Kind: "pow", LeastBits: 24}, Challenge{"pow", 200, caddy.Duration(time.Second), 24, 24, "Challenge-Solution", ""}},
		{Challenge{"pow", 7, caddy.Duration(time.Hour), 4, 28, "x-proof", "proof"}, Challenge{"pow", 7, caddy.Duration(time.Hour), 4, 28, "x-proof", "proof"}},
	} {
		got := c.given
		if err := got.check(); err != nil || got != c.want {
			t.Errorf("%+v becomes %+v, %v", c.given, got, err)
		}
	}
	for want, c := range map[string]Challenge{
		`kind "": there is pow`:            {},
		"-1 attempts are outside":          {Kind: "pow", Above: -1},
		"the window 1ns is outside":        {Kind: "pow", Window: 1},
		"bits from 3 to 20":                {Kind: "pow", LeastBits: 3},
		"bits from 12 to 29":               {Kind: "pow", MostBits: 29},
		"bits from 12 to 11":               {Kind: "pow", MostBits: 11},
		"the header Upgrade is one":        {Kind: "pow", Header: "Upgrade"},
		`the cookie "a;" is no name`:       {Kind: "pow", Cookie: "a;"},
		"the header X-Original-URL is one": {Kind: "pow", Header: "X-Original-URL"},
	} {
		if err := c.check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
