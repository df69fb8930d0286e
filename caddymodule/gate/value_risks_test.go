package gate_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A value that is probably misspelt has a warning where a configuration loads, and in the doctor.
func TestRisksOfValues(t *testing.T) {
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	for option, says := range map[string]string{
		"idempotency {header.Idempotency_Key}": "{header.Idempotency_Key} does not read the header Idempotency-Key",
		"region {nosuch.place}":                "nothing in Caddy or Stockgate sets {nosuch.place}",
		"region json.place":                    "json.place is a constant, the same for all attempts",
		"region {json.place}":                  "",
	} {
		before := len(p.Read("log"))
		p.Change("", "", strings.Replace(sitetest.GuardedGate, "line {json.sku}", "line {json.sku}\n"+option, 1))
		found := p.Admin("GET", "/stockgate/doctor", "").Body
		if strings.Contains(found, `"check":"values"`) != (says != "") || !strings.Contains(found, says) {
			t.Errorf("%s: the doctor says %s", option, found)
		}
		if logged := p.Read("log")[before:]; !strings.Contains(logged, says) {
			t.Errorf("%s: the log says %s", option, logged)
		}
	}
}
