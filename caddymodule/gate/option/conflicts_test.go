package option_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/check"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
)

// written is each option of the table in JSON, with what it needs.
var written = map[string]struct {
	text  string
	needs []string
}{
	"line":            {`"lines": [{"sku": ["{json.sku}"]}]`, nil},
	"lines":           {`"lines_from": {"array": "{json.items}", "sku": "sku"}`, nil},
	"graphql":         {`"graphql": [{"field": "placeOrder"}]`, nil},
	"json_body":       {`"json_body": [{"path": "order"}]`, nil},
	"persisted":       {`"persisted": "operations.json"`, nil},
	"rate":            {`"rates": [{"key": ["ip"], "events": 1, "window": "1s"}]`, nil},
	"deny":            {`"deny": ["bots"]`, nil},
	"allow":           {`"allow": ["members"]`, nil},
	"challenge":       {`"challenge": {"kind": "pow"}`, nil},
	"one_at_a_time":   {`"one_at_a_time": {"credentials": ["{cookie.session}"]}`, nil},
	"fast_refusals":   {`"fast_refusals": {}`, nil},
	"max_in_flight":   {`"max_in_flight": 5`, nil},
	"ref":             {`"ref": ["{json.cart}"]`, nil},
	"ref shared":      {`"ref_shared": true`, []string{"ref"}},
	"continue":        {`"continue": true`, []string{"ref"}},
	"idempotency":     {`"idempotency": ["{header.Idempotency-Key}"]`, nil},
	"lookup":          {`"lookup": {"url": "http://shop/cart"}`, nil},
	"repeats":         {`"repeats": {}`, []string{"ref"}},
	"idempotency_ttl": {`"idempotency_ttl": "1h"`, []string{"idempotency"}},
	"outcome ask":     {`"outcome": "ask", "ask": {}`, []string{"ref", "confirm", "release"}},
	"outcome backend": {`"outcome": "backend"`, nil},
	"confirm":         {`"rules": [{"outcome": "confirm"}]`, nil},
	"release":         {`"rules": [{"outcome": "release"}]`, nil},
	"in_doubt":        {`"in_doubt": {}`, nil},
	"queue":           {`"queue": {}`, nil},
	"queue again":     {`"queue": {"again": "later"}`, nil},
	"shadow":          {`"shadow": true`, nil},
}

// neededInCheck is what an option needs in a stockgate_check only.
var neededInCheck = map[string][]string{"lookup": {"one_at_a_time"}}

// conflictOf returns the conflict of a gate, or a check, with these options and what they need, but for one.
func conflictOf(t *testing.T, inCheck bool, without string, options ...string) error {
	t.Helper()
	for _, option := range options {
		options = append(options, written[option].needs...)
		if inCheck {
			options = append(options, neededInCheck[option]...)
		}
	}
	slices.Sort(options)
	var texts []string
	rules := ""
	for _, option := range slices.Compact(options) {
		one, known := written[option]
		switch {
		case !known:
			t.Fatalf("this test does not know how %s is written", option)
		case option == without:
		case strings.HasPrefix(one.text, `"rules"`): // two options in one list
			rules += strings.TrimSuffix(strings.TrimPrefix(one.text, `"rules": [`), "]") + ","
		default:
			texts = append(texts, one.text)
		}
	}
	if rules != "" {
		texts = append(texts, `"rules": [`+strings.TrimSuffix(rules, ",")+"]")
	}
	var handler interface{ Bind() *option.Setup } = new(gate.Gate)
	if inCheck {
		handler = new(check.Check)
	}
	if err := json.Unmarshal([]byte("{"+strings.Join(texts, ",")+"}"), handler); err != nil {
		t.Fatalf("%s: %v", texts, err)
	}
	return handler.Bind().Conflict()
}

// Each row of the table is an error that names both options and says why, and an option alone, with what
// it needs, is none.
func TestConflicts(t *testing.T) {
	for _, row := range option.Conflicts {
		others := row.Excludes
		if row.Needs != "" {
			others = []string{row.Needs}
		}
		for _, other := range others {
			err := conflictOf(t, row.Check, "", row.Option, other)
			if row.Needs != "" {
				if err := conflictOf(t, row.Check, "", row.Option); err != nil {
					t.Errorf("%s, and what it needs: %v", row.Option, err)
				}
				err = conflictOf(t, row.Check, other, row.Option)
			}
			if err == nil || !strings.Contains(err.Error(), row.Option) || !strings.Contains(err.Error(), other) || !strings.HasSuffix(err.Error(), row.Why) {
				t.Errorf("%s, %s: %v", row.Option, other, err)
			}
		}
	}
	for option := range written {
		if err := conflictOf(t, false, "", option); err != nil {
			t.Errorf("a gate with %s: %v", option, err)
		}
	}
}
