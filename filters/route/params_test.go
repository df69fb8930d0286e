package route_test

import (
	"slices"
	"testing"

	"github.com/stockgate/stockgate/filters/route"
)

// What any server reads in a query is yielded, also where others refuse or drop it.
func TestParams(t *testing.T) {
	for query, want := range map[string][]string{
		"":                 nil,
		"&&":               nil,
		"a":                {"a:"},
		"a=b&c=d=e":        {"a:b", "c:d=e"},
		"%61+b=%2Fc+d":     {"a b:/c d"},
		"a=%zz&%=%4":       {"a:%zz", "%:%4"},
		"a=b;c=d&e":        {"a:b;c=d", "a:b", "c:d", "e:"},
		"x;a=b":            {"x;a:b", "x:", "a:b"},
		";":                {";:"},
		"=x":               {":x"},
		"a%26b=%3B%3D%253": {"a&b:;=%3"},
	} {
		var got []string
		for p := route.ParamsOf(query); p.Next(); {
			got = append(got, p.Name+":"+p.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

func TestSameParam(t *testing.T) {
	for name, want := range map[string]bool{
		"rest_route": true, "Rest_Route": true, "rest.route": true, "rest route": true, "rest[route": true, " rest_route": true, "rest_route ": true,
		"rest_route[]": true, "rest.route[a][b]": true, "rest_route\x00x": true, "[]rest_route": true, ".rest_route": true,
		"": false, "rest": false, "route": false, "rest-route": false, "rest__route": false, "the_rest_route": false, "a[rest_route]": false, "rest\x00_route": false,
	} {
		if got := route.SameParam(name, "rest_route"); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	if !route.SameParam("rest_route", "rest.route") {
		t.Error("a wanted name is not read as PHP reads it")
	}
}

// A value is a path below the prefix, in all its readings.
func TestQueryPath(t *testing.T) {
	for _, c := range []struct{ text, value, path string }{
		{"rest_route", "/wp-json/checkout", "/wp-json/checkout"},
		{"rest_route", "api/order", "/api/order"},
		{"rest_route=/wp-json", "/wc/checkout", "/wp-json/wc/checkout"},
		{"rest_route=/wp-json/", "wc/checkout/", "/wp-json/wc/checkout"},
		{"rest_route=/wp-json", "//wc%2Fcheckout", "/wp-json/wc/checkout"},
		{"rest_route=/wp-json", "/wc/checkout;x", "/wp-json/wc/checkout"},
		{"rest_route=/wp-json", "/x/../wc/checkout", "/wp-json/wc/checkout"},
		{"rest_route=/wp-json", "", "/wp-json/"},
		{"s=/", "/api/order", "/api/order"},
	} {
		p, ok := route.ParseQueryPath(c.text)
		all, complete := p.Readings(c.value)
		if !ok || !complete || !slices.Contains(all, c.path) || !p.Named("s") && !p.Named("rest.route") {
			t.Errorf("%s %q: %t, %q, complete %t, want %q", c.text, c.value, ok, all, complete, c.path)
		}
	}
	for _, text := range []string{"", "=/x", "a=", "a=x", "a=x/y", "a=/x/../y", "a=/x%2fy", "a=/x;y"} {
		if _, ok := route.ParseQueryPath(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}

// A value is a route in another spelling.
func TestValueReadings(t *testing.T) {
	for _, c := range []struct {
		value, want string
		same        bool
	}{
		{"checkout/confirm", "checkout/confirm", true},
		{"Checkout/CONFIRM", "checkout/confirm", true},
		{"/checkout//confirm/", "checkout/confirm", true},
		{" checkout/confirm\t", "checkout/confirm", true},
		{"checkout%2fconfirm", "checkout/confirm", true},
		{"checkout/x/../confirm", "checkout/confirm", true},
		{"checkout/con-firm!", "checkout/confirm", true},
		{"checkout/!/confirm/?", "checkout/confirm", true},
		{"checkout/confirm", "/checkout/confirm/", true},
		{"checkout/confirmation", "checkout/confirm", false},
		{"checkoutconfirm", "checkout/confirm", false},
		{"account/checkout/confirm", "checkout/confirm", false},
		{"", "checkout/confirm", false},
		{"1", "1", true},
		{"1.0", "10", false},
		{"", "", true},
	} {
		all, complete := route.ValueReadings(c.value)
		same := slices.ContainsFunc(all, func(reading string) bool { return route.SameValue(reading, c.want) })
		if !complete || same != c.same {
			t.Errorf("%q for %q: %t, %q, complete %t", c.value, c.want, same, all, complete)
		}
	}
}
