package gate_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestCartRisks: a gate that may reserve another cart than the shop sells has a warning when the configuration
// loads, and in the doctor.
func TestCartRisks(t *testing.T) {
	const (
		other     = "the path /carts/*/complete names a cart, and the lookup does not ask for that one"
		unlocked  = "a cart may change between its lookup and the order"
		unchecked = "no stockgate_check with the same credential makes the requests wait that change the cart"
		response  = "`outcome response` believes the shop's answer to the client"
		asked     = "outcome ask GET http://127.0.0.1:1/orders/{ref}\nconfirm 200\nrelease 404\n"
		byRef     = "lookup GET http://127.0.0.1:1/carts/{ref}\nref {path.1}\n"
		bySession = "lookup GET http://127.0.0.1:1/cart\nref {path.1}\n"
		turns     = "one_at_a_time {path.1}\n"
	)
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", sitetest.GuardedGate)
	for name, c := range map[string]struct {
		options, beside string
		want            []string
	}{
		"well":             {byRef + asked + turns, "stockgate_check /carts/*/lines turns {\n" + turns + "}\n", nil},
		"no lookup":        {"line {json.sku}\n", "", nil},
		"session's cart":   {bySession + asked + turns, "stockgate_check /carts/*/lines turns {\n" + turns + "}\n", []string{other}},
		"another segment":  {strings.Replace(byRef, "path.1", "path.0", 1) + asked + turns, "stockgate_check /carts/*/lines turns {\n" + turns + "}\n", []string{other}},
		"no turns":         {byRef + asked, "", []string{unlocked}},
		"no check":         {byRef + asked + turns, "", []string{unchecked}},
		"other turns":      {byRef + asked + turns, "stockgate_check /carts/*/lines turns {\none_at_a_time {cookie.cart}\n}\n", []string{unchecked}},
		"the cart's turns": {byRef + asked + "one_at_a_time {path.1} {lookup.cart.id}\n", "stockgate_check /carts/*/lines turns {\n" + turns + "}\n", []string{unchecked}},
		"the same turns": {byRef + asked + "one_at_a_time {path.1} {lookup.cart.id}\n",
			"stockgate_check /carts/*/lines turns {\none_at_a_time {lookup.cart.id}\nlookup GET http://127.0.0.1:1/cart\n}\n", nil},
		"operations": {byRef + asked + turns + "json_body method card\n", "", nil},
		"the answer": {byRef + turns, "stockgate_check /carts/*/lines turns {\n" + turns + "}\n", []string{response}},
	} {
		options := "buyer {header.X-User-Id}\n" + c.options
		if strings.Contains(options, "lookup") {
			options += "lines {lookup.cart.items} sku quantity\n"
		}
		before := len(p.Read("log"))
		p.Change("", "", "stockgate_guard\n"+c.beside+"@order {\nmethod POST\npath /carts/*/complete\n}\nstockgate @order main {\n"+options+"}\nrespond 201\n")
		lines := p.Read("log")[before:]
		doctor := p.Admin("GET", "/stockgate/doctor", "").Body
		for _, risk := range []string{other, unlocked, unchecked, response} {
			want := len(c.want) > 0 && c.want[0] == risk
			if strings.Contains(lines, risk) != want || strings.Contains(doctor, risk) != want {
				t.Errorf("%s: %q is wanted: %t; the log says\n%s\nthe doctor says\n%s", name, risk, want, lines, doctor)
			}
		}
	}
}
