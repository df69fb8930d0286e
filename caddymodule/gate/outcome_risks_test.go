package gate_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// An answer that is taken for its contrary is warned of where a configuration in JSON loads, and by the doctor.
func TestRisksOfOutcomes(t *testing.T) {
	const (
		confirms = "confirm 4xx: with the status 4xx shops say that they have not taken an order, whose units count as sold then: name in an @answer what else shows that it was taken"
		releases = "release 5xx: after the status 5xx an order may stand all the same, and its units go back on sale: leave it out, so that such an order is not taken for one that was refused"
		probe    = "in_doubt probe: confirm 404: with the status 404 shops say that they have not taken an order, whose units count as sold then: name in an @answer what else shows that it was taken"
	)
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	logged := func() int { return len(p.Logged(confirms)) + len(p.Logged(releases)) + len(p.Logged(probe)) }
	for rules, warnings := range map[string]int{
		"confirm 2xx 4xx": 1, "release 4xx 5xx": 1, "confirm 2xx\nrelease 4xx 503": 0,
		"in_doubt probe http://127.0.0.1:1/orders/{id} {\nconfirm 404\n}": 1,
	} {
		gate := sitetest.GuardedGate
		if strings.HasPrefix(rules, "in_doubt") {
			gate = strings.Replace(gate, "in_doubt probe http://127.0.0.1:1/orders/{id}\n", "", 1)
		}
		before := logged()
		p.Change("", "", strings.Replace(gate, "line {json.sku}", "line {json.sku}\n"+rules, 1))
		if more := logged() - before; more != warnings {
			t.Errorf("%s: the log has %d warnings more", rules, more)
		}
		if found := p.Admin("GET", "/stockgate/doctor", "").Body; strings.Contains(found, `"check":"outcome"`) != (warnings > 0) {
			t.Errorf("%s: the doctor says %s", rules, found)
		}
	}
}
