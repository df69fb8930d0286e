package command_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// With --judge-only there is no crowd: what would describe one is a mistake, and is named.
func TestJudgeOnlyHasNoCrowd(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	judge := []string{"rehearse", "--sale", "double11", "--judge-only"}
	for flag, value := range map[string]string{
		"host": "shop.test", "data": "users.csv", "arrive": "spike", "buyers": "5", "over": "1s", "double": "5%", "bots": "1%", "leave": "0%",
		"seed": "1", "retry": "1", "timeout": "1s", "insecure": "true",
	} {
		r := s.Run(append(judge, "--"+flag+"="+value)...)
		if r.Status != 2 || r.Out != "" || r.Errors != "caddy stockgate rehearse: --judge-only sends no requests: leave out --"+flag+"\n" {
			t.Errorf("--%s: %+v", flag, r)
		}
	}
	orders := s.File("orders.csv", "reservation\n")
	if r := s.Run(append(judge, "--settle", "1s", "--require", "sold=0", "--orders", orders)...); r.Status != 0 {
		t.Errorf("%+v", r)
	}
}
