package guard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestOverriddenMethods asks for the method of a gate in every place and spelling in which some
// framework finds it, beside others that do not.
func TestOverriddenMethods(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	refusesAll(s, shop,
		asks("POST /api/basket", "X-HTTP-Method: GET", "X-HTTP-Method-Override: PUT"), asks("POST /api/basket", "X-HTTP-Method: PUT", "X-HTTP-Method-Override: GET"),
		asks("POST /api/basket", "X-HTTP-Method-Override: GET", "X-HTTP-Method-Override: PUT"), asks("POST /api/basket", "X-HTTP-Method-Override: PUT, x"),
		asks("POST /api/basket?_method=GET&_method=PUT"), asks("POST /api/basket?%5fmethod=PUT"), asks("POST /api/basket?.method=PUT"),
		asks("POST /api/basket?_method=PUT&x=%zz"), asks("POST /api/basket?_method=PUT&x;y"), asks("POST /api/basket?x;_method=PUT"),
		asks("POST /other", "X-HTTP-Method: A,B,C,D,E"), asks("POST /other?_method=A&_method=B&_method=C&_method=D&_method=E"))
	passesAll(s, shop,
		asks("POST /api/basket", "X-HTTP-Method: DELETE"), asks("POST /api/basket?_method=DELETE&x=%zz"), asks("POST /other?_method=PUT&x;y"), asks("POST /api/basket?method=PUT"))
}

// TestSecondLookAtOverriddenMethods rewrites such requests into the gated route behind the guard.
func TestSecondLookAtOverriddenMethods(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, "stockgate_guard\n"+strings.Replace(orderGate, "method POST", "method PUT", 1)+
		strings.ReplaceAll("handle /old/* {\n uri replace /old /api\n reverse_proxy SHOP\n }\n reverse_proxy SHOP\n", "SHOP", shop.Addr()))
	for request, status := range map[string]int{
		asks("POST /old/order?.method=PUT&x=%zz"):                                         http.StatusBadRequest,
		asks("POST /old/order", "X-HTTP-Method: GET", "X-HTTP-Method-Override: GET, PUT"): http.StatusBadRequest,
		asks("POST /old/order?.method=DELETE"):                                            http.StatusCreated,
	} {
		answer := s.AnswerTo(request)
		if got := shop.Take(); answer.Status != status || (len(got) > 0) != (status == http.StatusCreated) {
			t.Errorf("%.80s: the client got %d %s, the shop %+v", request, answer.Status, answer.Body, got)
		}
	}
}
