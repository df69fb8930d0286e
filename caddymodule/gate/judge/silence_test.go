package judge

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/internal/sale"
)

// The log says once that a value was absent in all of the first 200 attempts, and nothing if a
// single one had it, or for a dry run.
func TestSilentValues(t *testing.T) {
	const empty, absent = "the buyer was empty in all 200 attempts", "a quantity that the gate names was absent in all 200 attempts"
	line := []sale.Line{{SKU: "a", Quantity: 1}}
	for name, c := range map[string]struct {
		had  sale.Attempt // the first attempt
		dry  Purpose
		want []string
	}{
		"both absent": {sale.Attempt{Lines: line, AssumedOne: true}, Serving, []string{empty, absent}},
		"a buyer":     {sale.Attempt{Lines: line, AssumedOne: true, Buyer: "b"}, Serving, []string{absent}},
		"a quantity":  {sale.Attempt{Lines: line}, Serving, []string{empty}},
		"a dry run":   {sale.Attempt{Lines: line, AssumedOne: true}, Trying, nil},
	} {
		core, logged := observer.New(zap.InfoLevel)
		g := &Judge{Setup: option.Setup{AttemptOptions: &option.AttemptOptions{Buyer: []string{"{header.X-User}"}, Lines: []option.Line{{SKU: []string{"{json.sku}"}, Quantity: []string{"{json.qty}"}}}}}, log: zap.New(core)}
		none := sale.Attempt{Lines: line, AssumedOne: true}
		g.notice(&Case{Cart: Cart{Attempt: &c.had}, Visit: Visit{Purpose: c.dry}})
		for range 3 * 200 {
			if n := logged.Len(); n > len(c.want) {
				t.Fatalf("%s: %d messages", name, n)
			}
			g.notice(&Case{Cart: Cart{Attempt: &none}, Visit: Visit{Purpose: c.dry}})
		}
		if logged.Len() != len(c.want) {
			t.Errorf("%s: %v", name, logged.All())
			continue
		}
		for i, entry := range logged.All() {
			if got := entry.Message[:len(c.want[i])]; got != c.want[i] {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
