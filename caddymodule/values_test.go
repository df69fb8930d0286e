package caddymodule_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/sitetest"
)

const userGate = "stockgate_guard\n%s@order {\nmethod POST\npath /order\n}\nstockgate @order main {\nbuyer {http.auth.user.id}\nline {json.sku}\n}\nrespond 201\n"

// A gate that reads the user of an authentication that the server does not have is warned
// about, by the log when the configuration loads and by the doctor.
func TestUserWithoutAuthentication(t *testing.T) {
	const says = "is always empty, because"
	p := admit(t, wellRedis, "", "", strings.Replace(userGate, "%s", "", 1))
	if log := p.Read("log"); !strings.Contains(log, "{http.auth.user.id} is always empty, because the server has no authentication") {
		t.Error("the log does not say so")
	}
	if out := p.doctor().Out; !strings.Contains(out, "{http.auth.user.id}, which "+says) {
		t.Errorf("the doctor does not say so:\n%s", out)
	}
	hash := "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG"
	p.change("", "", strings.Replace(userGate, "%s", "basic_auth {\nann "+hash+"\n}\n", 1))
	if out := p.doctor().Out; strings.Contains(out, says) {
		t.Errorf("the doctor warns although there is one:\n%s", out)
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
	p := admit(t, wellRedis, "", "", gate)
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
	p.change("", "", gate+"handle_errors {\nrespond \"the site's own page\"\n}\n")
	if a := buy("bob"); a.Status != 504 || a.Body != "the site's own page" {
		t.Errorf("%d %q", a.Status, a.Body)
	}
}
