package route_test

import (
	"slices"
	"testing"

	"github.com/stockgate/stockgate/route"
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
		for name, value := range route.Params(query) {
			got = append(got, name+":"+value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	for range route.Params("a;b&c") { // a caller may stop anywhere
		break
	}
}
