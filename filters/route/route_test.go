package route_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/route"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ method, target, path, query, why string }{
		{"GET", "/", "/", "", ""},
		{"POST", "/api/order?a=b?c", "/api/order", "a=b?c", ""},
		{"FOO", "/x", "/x", "", ""},
		{"foo", "/x", "/x", "", ""},
		{"M-SEARCH", "/x", "/x", "", ""},
		{"OPTIONS", "*", "*", "", ""},
		{"CONNECT", "h:443", "/", "", ""},
		{"CONNECT", "/socket", "/socket", "", ""},
		{"GET", "http://h/x?y", "/x", "y", ""},
		{"GET", "HTTPS://h:1", "/", "", ""},
		{"GET", "*", "", "", "neither"},
		{"POST", "x:http://h/p", "", "", "neither"},
		{"POST", "http:/p", "", "", "neither"},
		{"POST", "h:80", "", "", "neither"},
		{"POST", "ftp://h/p", "", "", "neither"},
		{"POST", "http://u:p@h/p", "", "", "authority"},
		{"POST", "http:///p", "", "", "authority"},
		{"POST", "/a#b", "", "", "fragment"},
		{"POST", "/a?b#c", "", "", "fragment"},
		{"POST", "/a\x00", "", "", "control"},
		{"POST", "/a?\n", "", "", "control"},
		{"post", "/x", "", "", "capitals"},
		{"PropFind", "/x", "", "", "capitals"},
	} {
		path, query, _, why := route.Check(c.method, c.target)
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || why == "" && (path != c.path || query != c.query) {
			t.Errorf("%s %q: %q, %q, %q", c.method, c.target, path, query, why)
		}
	}
}

func TestShape(t *testing.T) {
	for path, want := range map[string]route.Shape{
		"/": 0, "/api/order": 0, "/%e6%97%a5": 0, "/a%20b": 0, "/a.b/c.php": 0, "/.well-known/x": 0, "/a..b/...": 0, "/x:y@z,w=1": 0,
		"/API": route.Upper, "/a/": route.Slash, "/A/": route.Upper | route.Slash,
		"//": route.Odd | route.Slash, "/a//b": route.Odd, "/./a": route.Odd, "/a/..": route.Odd, "/a;b": route.Odd, `/a\b`: route.Odd, "/a%2fb": route.Odd,
		"/a%2Eb": route.Odd, "/%61": route.Odd, "/%30": route.Odd, "/%25": route.Odd, "/%zz": route.Odd, "/a%": route.Odd, "/%00": route.Odd, "/%23": route.Odd,
		"/%3f": route.Odd, "/x.php/y": route.Odd, "/x.pHp/": route.Odd | route.Upper | route.Slash,
	} {
		if got := route.ShapeOf(path); got != want {
			t.Errorf("%q: %b, want %b", path, got, want)
		}
	}
}

func TestReadings(t *testing.T) {
	for path, want := range map[string]string{
		"/x/..;a/%2561": "/a", "/index.php/b": "/b", "/app/index.php/b": "/app/b", "/a%23/../x": "/a", `/\h/b`: "/b", "//h": "/", "/%2525252f": "/%2f",
	} {
		all, complete := route.Readings(path)
		if all[0] != path || !complete || !slices.Contains(all, want) {
			t.Errorf("%q: %q, %t; want %q among them", path, all, complete, want)
		}
	}
	if _, complete := route.Readings(strings.Repeat("/a.php/..;%252e", 60)); complete {
		t.Error("a path with any number of readings is read to its end")
	}
}

// TestPlainPathsCostNothing: a path that all servers read alike is scanned once.
func TestPlainPathsCostNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		route.Check("POST", "/api/v1/%E4%B8%AD/orders?x=1")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPlain(b *testing.B) {
	for b.Loop() {
		route.Check("POST", "/api/v1/%E4%B8%AD/orders?x=1&y=abcdef")
	}
}

func BenchmarkReadings(b *testing.B) {
	for b.Loop() {
		route.Readings("/resize/https%3A%2F%2Fcdn.example.com%2Fa%20b.jpg%3Fw%3D1")
	}
}

// BenchmarkWorst is what an attacker can make of 8 KiB.
func BenchmarkWorst(b *testing.B) {
	path := strings.Repeat("/a.php/..;%252e", 8<<10/15)
	for b.Loop() {
		route.Readings(path)
	}
}
