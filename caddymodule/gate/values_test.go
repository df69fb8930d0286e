package gate_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

const userGate = "stockgate_guard\n%s@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.auth.user.id}\nline {json.sku}\n}\nrespond 201\n"

// A gate that reads the user of an authentication that the server does not have is warned
// about, by the log when the configuration loads and by the doctor.
func TestUserWithoutAuthentication(t *testing.T) {
	const says = "is always empty, because"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", strings.Replace(userGate, "%s", "", 1))
	if log := p.Read("log"); !strings.Contains(log, "{http.auth.user.id} is always empty, because no authentication comes before the gate") {
		t.Error("the log does not say so")
	}
	if out := p.Doctor().Out; !strings.Contains(out, "{http.auth.user.id}, which "+says) {
		t.Errorf("the doctor does not say so:\n%s", out)
	}
	hash := "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
	p.Change("", "", strings.Replace(userGate, "%s", "basic_auth {\nann "+hash+"\n}\n", 1))
	if out := p.Doctor().Out; strings.Contains(out, says) {
		t.Errorf("the doctor warns although there is one:\n%s", out)
	}
	login := "basic_auth {\nann " + hash + "\n}\n"
	const gate = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\n%s\n"
	const sells = "stockgate @order main {\nbuyer {http.auth.user.id}\nline {json.sku}\n}\nrespond 201\n"
	for name, c := range map[string]struct {
		site string
		bare bool
	}{
		"for another path":           {"handle /admin/* {\n" + login + "respond 200\n}\nhandle {\n" + sells + "}\n", true},
		"in its own block":           {"handle /admin/* {\nrespond 200\n}\nhandle {\n" + login + sells + "}\n", false},
		"after it in a route":        {"route {\nstockgate @order main {\nbuyer {http.auth.user.id}\nline {json.sku}\n}\n" + login + "respond 201\n}\n", true},
		"before it in a route":       {"route {\n" + login + sells + "}\n", false},
		"for its requests alone":     {strings.Replace(login, "basic_auth", "basic_auth @order", 1) + sells, false},
		"with another for its users": {"handle /admin/* {\n" + login + "}\n" + login + "route {\n" + sells + "}\n", false},
	} {
		p.Change("", "", strings.Replace(gate, "%s", c.site, 1))
		if out := p.Doctor().Out; strings.Contains(out, says) != c.bare {
			t.Errorf("%s: it says so: %v\n%s", name, !c.bare, out)
		}
	}
}

// A site of another server that sends orders to the gate's upstream without a gate is warned about, by the log
// and by the doctor; one that cannot get an order is not.
func TestSiteWithoutAGate(t *testing.T) {
	const gate = "stockgate_guard\n@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {header.X-User}\nline {json.sku}\n}\nreverse_proxy 127.0.0.1:9\n"
	const says = "the site other.example.com sends requests for the paths of the gate main of the site at unix/"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", gate)
	for name, c := range map[string]struct {
		site  string
		warns bool
	}{
		"the same shop":           {"reverse_proxy 127.0.0.1:9", true},
		"a path that has orders":  {"handle /o* {\nreverse_proxy 127.0.0.1:9\n}", true},
		"one of two upstreams":    {"reverse_proxy 127.0.0.1:8 127.0.0.1:9", true},
		"with a guard only":       {"stockgate_guard\nreverse_proxy 127.0.0.1:9", true},
		"another shop":            {"reverse_proxy 127.0.0.1:8", false},
		"its pictures":            {"handle /images/* {\nreverse_proxy 127.0.0.1:9\n}", false},
		"another exact path":      {"@stock path /stock /order/list\nreverse_proxy @stock 127.0.0.1:9", false},
		"a gate of its own":       {gate, false},
		"answers of its own":      {"respond 200", false},
		"an upstream of requests": {"reverse_proxy {http.request.header.x}:9", false},
	} {
		p.Change("", "", gate+"}\nhttp://other.example.com {\nbind unix/"+p.Socket("other")+"\n"+strings.ReplaceAll(c.site, " main ", " other ")+"\n")
		if out := p.Doctor().Out; strings.Contains(out, says) != c.warns || strings.Contains(out, "has no gate: nothing reserves") != c.warns {
			t.Errorf("%s: the doctor warns: %v\n%s", name, !c.warns, out)
		}
	}
	if log := p.Read("log"); !strings.Contains(log, says) {
		t.Error("the log does not say so")
	}
	p.Loads++ // the sockets have the number of the load
	same := p.Socket("http")
	p.Loads--
	p.Change("", "", gate+"}\nhttp://other.example.com {\nbind unix/"+same+"\nreverse_proxy 127.0.0.1:9\n")
	if out := p.Doctor().Out; strings.Contains(out, "nothing reserves") { // the second look refuses its orders
		t.Errorf("a site of the same server: %s", out)
	}
}

// Caddy says of a handler that it cannot provision only its position: the error names site and gate.
func TestErrorsNameTheSite(t *testing.T) {
	for site, want := range map[string]string{
		"route {\nreverse_proxy 127.0.0.1:9\nstockgate main {\nbuyer {header.X-User}\nline {json.sku}\n}\n}":   "in the site shop.example.com: the gate main comes after reverse_proxy",
		"stockgate main {\nbuyer {jwt.sub}\nline {json.sku}\njwt ed25519 /no/such/file\n}":                     "in the site shop.example.com, the gate main: jwt: ",
		"stockgate_check {\nbuyer {jwt.sub}\nline {json.sku}\njwt ed25519 /no/such/file\n}":                    "in the site shop.example.com, the gate without a name: jwt: ",
		"handle /api/* {\nstockgate main {\nbuyer {jwt.sub}\nline {json.sku}\njwt ed25519 /no/such/file\n}\n}": "in the site shop.example.com, the gate main: jwt: ",
	} {
		file := "{\nadmin off\nstockgate {\nredis 127.0.0.1:9\n}\n}\nhttp://shop.example.com {\n" + site + "\n}\n"
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(file), nil)
		if err != nil {
			t.Fatalf("%s: %v", site, err)
		}
		var config caddy.Config
		if err := json.Unmarshal(adapted, &config); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", site, err, want)
		}
	}
}

// A client whose order is in doubt gets a problem document with the reservation's id; where the
// site has error routes, these answer.
func TestDoubtHasABody(t *testing.T) {
	over := make(chan struct{})
	shop := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer shop.Close()
	defer close(over)
	dial := shop.Listener.Addr().(*net.TCPAddr).String()
	gate := "@order path /order\nstockgate_guard\nstockgate @order {\nbuyer {header.X-User}\nline {json.sku}\nforward_timeout 50ms\n}\nreverse_proxy " + dial + "\n"
	p := sitetest.Admit(t, sitetest.WellRedis, "", "", gate)
	p.OpenSale()
	buy := func(buyer string) sitetest.Answer {
		return p.AskWith("http", "POST", "/order", `{"sku":"plain"}`, map[string]string{"Content-Type": "application/json", "X-User": buyer})
	}
	a := buy("ann")
	var problem struct{ Reason, Reservation, Title string }
	if err := json.Unmarshal([]byte(a.Body), &problem); err != nil || a.Status != 504 || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %v %q", a.Status, a.Header, a.Body)
	}
	if problem.Reason != "in_doubt" || problem.Reservation == "" || problem.Reservation != a.Header.Get("Stockgate-Reservation") {
		t.Errorf("%+v", problem)
	}
	if problem.Title != "It is not known yet whether this purchase succeeded; please wait." { // the gate keeps holds in doubt: nothing checks
		t.Errorf("it says %q", problem.Title)
	}
	p.Change("", "", gate+"handle_errors {\nrespond \"the site's own page\"\n}\n")
	if a := buy("bob"); a.Status != 504 || a.Body != "the site's own page" {
		t.Errorf("%d %q", a.Status, a.Body)
	}
}
