package fastpath_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// What becomes of the first request of a connection.
const (
	here      = "answered here"
	delegated = "delegated" // net/http gets this request and no more
	left      = "left"      // net/http gets all, and whatever comes
)

// becomes says what becomes of the first request of these, which arrive in one piece.
func becomes(t *testing.T, server *fastpath.Server, text string) (string, *reader) {
	t.Helper()
	judge := new(reader)
	server.Judge = judge
	text += "x" // which a request that is delegated does not have
	c := server.Wrap(&pieces{rest: []byte(text), size: len(text)})
	c.Follow(http.StateNew)
	room := make([]byte, 8<<10)
	for {
		n, err := c.Read(room)
		switch {
		case len(judge.seen) > 0:
			return here, judge
		case err != nil:
			return left, judge
		case n == 0:
			return delegated, judge
		}
	}
}

const (
	upper     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters   = upper + "abcdefghijklmnopqrstuvwxyz"
	digits    = "0123456789"
	names     = "!#$%&'*+-^`|~" + digits + letters
	tokens    = names + "_."
	printable = `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~` + "`" + digits + letters
)

// TestEveryByte puts each byte into each place of a head.
func TestEveryByte(t *testing.T) {
	var obs strings.Builder // RFC 9110, section 5.5
	for c := 0x80; c <= 0xff; c++ {
		obs.WriteByte(byte(c))
	}
	text := printable + " \t" + obs.String()
	noSign := strings.ReplaceAll(printable, "#", "")
	noEscape := strings.ReplaceAll(noSign, "%", "")
	const rest = " HTTP/1.1\r\nHost: shop\r\n\r\n"
	for name, c := range map[string]struct {
		before, behind  string
		here, delegated string // others are left
	}{
		"method begins":      {"", "ET /" + rest, upper, tokens},
		"method":             {"G", "T /" + rest, upper, tokens},
		"target begins":      {"GET ", "" + rest, "/", printable},
		"target":             {"GET /a", "b" + rest, noEscape, "#"},
		"long target begins": {"GET /", "123456789" + rest, noSign, "#"},
		"long target":        {"GET /12345", "6789abcdefgh" + rest, noSign, "#"},
		"long target ends":   {"GET /12345678", rest, noEscape, "#"},
		"escape":             {"GET /%", "0" + rest, digits + "abcdefABCDEF", ""},
		"escape ends":        {"GET /%0", rest, digits + "abcdefABCDEF", ""},
		"query":              {"GET /?%", "b" + rest, noSign, "#"},
		"version":            {"GET / HTTP/1.", "\r\nHost: shop\r\n\r\n", "1", ""},
		"line end":           {"GET / HTTP/1.1", "\nHost: shop\r\n\r\n", "\r", ""},
		"name begins":        {"GET / HTTP/1.1\r\nHost: shop\r\n", "X: a\r\n\r\n", names, "_."},
		"name":               {"GET / HTTP/1.1\r\nHost: shop\r\nX", "X: a\r\n\r\n", names + ":", "_."},
		"name ends":          {"GET / HTTP/1.1\r\nHost: shop\r\nX", ": a\r\n\r\n", names + ":", "_."},
		"value begins":       {"GET / HTTP/1.1\r\nHost: shop\r\nX:", "a\r\n\r\n", text, ""},
		"value":              {"GET / HTTP/1.1\r\nHost: shop\r\nX: a", "b\r\n\r\n", text, ""},
		"value ends":         {"GET / HTTP/1.1\r\nHost: shop\r\nX: a", "\r\n\r\n", text, ""},
		"long value":         {"GET / HTTP/1.1\r\nHost: shop\r\nX: 12345", "6789abcdefgh\r\n\r\n", text, ""},
		"long value ends":    {"GET / HTTP/1.1\r\nHost: shop\r\nX: 1234567", "\r\n\r\n", text, ""},
		"long value, a tab":  {"GET / HTTP/1.1\r\nHost: shop\r\nX: 12\t3 4é5", "6789abcdefgh\r\n\r\n", text, ""},
		"host":               {"GET / HTTP/1.1\r\nHost: sh", "op\r\n\r\n", letters + digits + "-.:[]", ""},
		"keep-alive":         {"GET / HTTP/1.1\r\nHost: shop\r\nConnection: keep-aliv", "\r\n\r\n", "eE", ""},
		"length":             {"POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 1", "\r\n\r\n" + strings.Repeat("x", 4000), digits + " \t", ""},
	} {
		for b := range 256 {
			want := left
			in := string([]byte{byte(b)})
			switch {
			case strings.Contains(c.here, in):
				want = here
			case strings.Contains(c.delegated, in):
				want = delegated
			}
			if got, _ := becomes(t, new(fastpath.Server), c.before+in+c.behind); got != want {
				t.Errorf("%s: %q is %s, not %s", name, byte(b), got, want)
			}
		}
	}
}

// TestPlainTargets: what goes for plain, also over HTTP/2, net/http reads.
func TestPlainTargets(t *testing.T) {
	for target, want := range map[string]bool{
		"/": true, "/%2a": true, "/%2A%00?%": true, "/a?b=%zz": true, "/%3f%": false, "/%": false, "/%2": false, "/%2?a": false, "/%zz": false, "/a%?b": false,
	} {
		if got := fastpath.IsPlainRequest("GET", target, "shop"); got != want {
			t.Errorf("%q is plain: %t, want %t", target, got, want)
		}
		if _, err := url.ParseRequestURI(target); (err == nil) != want {
			t.Errorf("%q: net/http says %v", target, err)
		}
	}
}

// TestMeantFields reads fields that say how to read the request, in any case, and no other
// field for one of them.
func TestMeantFields(t *testing.T) {
	for field, want := range map[string]string{
		"Host: shop": left, "Content-Length: 0": left, // again
		"Expect: x": left, "Upgrade: x": left, "Trailer: x": left, "HTTP2-Settings: x": left, "Transfer-Encoding: chunked": left,
		"Connection: x": left, "Connection: close": delegated, "Pragma: x": delegated,
		"Connection: keep-alive": here,
	} {
		name, value, _ := strings.Cut(field, ":")
		for i := range len(name) {
			for _, c := range []struct{ name, want string }{
				{name[:i] + strings.ToLower(name[i:i+1]) + name[i+1:], want},
				{name[:i] + strings.ToUpper(name[i:i+1]) + name[i+1:], want},
				{name[:i] + "0" + name[i+1:], here},
			} {
				text := "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n" + c.name + ":" + value + "\r\n\r\n"
				if got, _ := becomes(t, new(fastpath.Server), text); got != c.want {
					t.Errorf("%s:%s is %s, not %s", c.name, value, got, c.want)
				}
			}
		}
	}
}

// TestFieldsAreTrimmed reads names and values without the white space around the values.
func TestFieldsAreTrimmed(t *testing.T) {
	text := "GET /?a HTTP/1.1\r\nA:\r\nHost:shop \r\nB: \t \r\nC: \tc d\t \r\nD:e:f\r\n\r\n"
	what, judge := becomes(t, new(fastpath.Server), text)
	if what != here {
		t.Fatal(what)
	}
	got, want := judge.seen[0], http.Header{"A": {""}, "B": {""}, "C": {"c d"}, "D": {"e:f"}}
	if fmt.Sprint(got.header) != fmt.Sprint(want) || got.host != "shop" || got.target != "/?a" || got.method != "GET" {
		t.Errorf("read %+v", got)
	}
}

// TestEmptyLinesInPieces passes over as many empty lines behind a POST as net/http does,
// however they arrive, and over none behind another request.
func TestEmptyLinesInPieces(t *testing.T) {
	for before, want := range map[string]int{post("/", "a"): 2, get("/"): 1} {
		for _, lines := range []string{"\n", "\r\n", "\n\n\n", "\r\n\r\n"} {
			for size := 1; size < 7; size++ {
				judge := new(reader)
				c := (&fastpath.Server{Judge: judge}).Wrap(&pieces{rest: []byte(before + lines + get("/b")), size: size})
				c.Follow(http.StateNew)
				for {
					if _, err := c.Read(make([]byte, 100)); err != nil {
						break
					}
				}
				if len(judge.seen) != want {
					t.Errorf("%q behind %.4s in pieces of %d: %d requests were answered, want %d", lines, before, size, len(judge.seen), want)
				}
			}
		}
	}
}

// TestLargestHere answers what just fits, and leaves or lends what is larger by one.
func TestLargestHere(t *testing.T) {
	head := func(size int) string {
		const around = len("GET / HTTP/1.1\r\nHost: shop\r\nX: \r\n\r\n")
		return "GET / HTTP/1.1\r\nHost: shop\r\nX: " + strings.Repeat("x", size-around) + "\r\n\r\n"
	}
	body := func(size int) string {
		const head = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 16000\r\nX: \r\n\r\n"
		return strings.Replace(head, "X: ", "X: "+strings.Repeat("x", size-16000-len(head)), 1) + strings.Repeat("b", 16000)
	}
	fields := func(n int) string {
		return "GET / HTTP/1.1\r\nHost: shop\r\n" + strings.Repeat("X: a\r\n", n-1) + "\r\n"
	}
	length := func(digits string) string {
		return "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: " + digits + "\r\n\r\nabc"
	}
	for name, c := range map[string]struct {
		maxHead int
		text    string
		want    string
	}{
		"head":                  {0, head(16 << 10), here},
		"head + 1":              {0, head(16<<10 + 1), left},
		"head, MaxHead":         {1000, head(1000), here},
		"head, MaxHead + 1":     {1000, head(1001), left},
		"half a head, MaxHead":  {1000, head(4000), left},
		"MaxHead of the buffer": {16 << 10, head(16 << 10), here},
		"MaxHead of more":       {16<<10 + 1, head(16 << 10), here},
		"more than MaxHead":     {16<<10 + 1, head(16<<10 + 1), left},
		"body":                  {0, body(16 << 10), here},
		"body + 1":              {0, body(16<<10 + 1), delegated},
		"fields":                {0, fields(64), here},
		"fields + 1":            {0, fields(65), left},
		"digits":                {0, length("000000000000003"), here},
		"digits + 1":            {0, length("0000000000000003"), left},
		"the shortest target":   {0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", here},
		"the shortest method":   {0, "A / HTTP/1.1\r\nHost: a\r\n\r\n", here},
		"no target":             {0, "GET  HTTP/1.1\r\nHost: a\r\n\r\n", left},
		"no method":             {0, " / HTTP/1.1\r\nHost: a\r\n\r\n", left},
		"nothing but a version": {0, " HTTP/1.1\r\nHost: a\r\n\r\n", left},
	} {
		if got, _ := becomes(t, &fastpath.Server{MaxHead: c.maxHead}, c.text); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
