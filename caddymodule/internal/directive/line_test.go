package directive_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// An error has the line of the option that it begins with, or of the directive.
func TestWrapOption(t *testing.T) {
	const block = `gate main {
	rate {client_ip} 1 1s
	in_doubt probe http://shop/{id} {
		confirm 200
		rate 2
	}
	rate {json.sku} 2 1s
	identity phone {json.phone}
	identity email {json.email}
	buyer {json.
		buyer}
	confirm 201
}`
	for text, line := range map[string]string{
		"rate, number 1: no":    "2",
		"rate, number 2: no":    "7",
		"rate: no":              "2",
		"in_doubt: no":          "3",
		"confirm: no":           "12",
		"identity email: no":    "9",
		"identity device: no":   "8",
		"rate: number 2 of 2: ": "7",
		"hold_for 1s is short":  "1",
		"main: no":              "1",
		"A server answers 200":  "1",
	} {
		d := caddyfile.NewTestDispenser(block)
		d.Next()
		if err := directive.WrapOption(*d, errors.New(text)); !strings.HasSuffix(err.Error(), text+", at Testfile:"+line) {
			t.Errorf("%v, want line %s", err, line)
		}
		if d.Line() != 1 {
			t.Error("the dispenser has moved")
		}
	}
	if err := directive.WrapOption(caddyfile.Dispenser{}, nil); err != nil {
		t.Error(err)
	}
}
