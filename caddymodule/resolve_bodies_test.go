package caddymodule_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Bodies of one client that no signature was checked of are bounded. A body that has come makes
// room, and what is refused is answered without waiting for its body.
func TestWebhookBodiesAtOnce(t *testing.T) {
	s := openFast(t, "trusted_proxies static 127.0.0.0/8", `
SITEshop.example.comPORT {
	stockgate /order {
		buyer {header.X-User-Id}
		line out
		FAST
	}
	stockgate_resolve /hook {
		verify stripe `+hookSecret+`
		ref {json.order}
		@paid {
			json type paid
		}
		confirm @paid
	}
	respond 201
}
`)
	const length = 100
	signature := signed("another body", hookSecret, time.Now()).Header.Get("Stripe-Signature")
	begin := func(from, more string) *rawConn {
		t.Helper()
		c := s.open(s.plain)
		t.Cleanup(func() { c.Close() })
		if _, err := fmt.Fprintf(c, "POST /hook HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: %s\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n%s\r\n", from, signature, length, more); err != nil {
			t.Fatal(err)
		}
		return c
	}
	hangs := func(from string) *rawConn { // until the edge reads its body
		t.Helper()
		c := begin(from, "Expect: 100-continue\r\n")
		if line, err := c.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
			t.Fatalf("%s: %q %v", from, line, err)
		}
		_, _ = c.r.ReadString('\n')
		return c
	}
	answered := func(c *rawConn) (*http.Response, string) {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c.r), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp, string(text)
	}
	refused := func(from string) {
		t.Helper()
		for _, more := range []string{"", "Expect: 100-continue\r\n"} {
			(&hooks{site: s.site}).counts(func() {
				resp, text := answered(begin(from, more))
				if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "too many webhooks of this address are being read") {
					t.Errorf("%s: %d %v %s", from, resp.StatusCode, resp.Header, text)
				}
			}, "limited 1")
		}
	}
	first := hangs("2001:db8::1")
	for i := range 63 {
		hangs(fmt.Sprintf("2001:db8::%x", i+2))
	}
	refused("2001:db8::1:1")
	if _, err := io.WriteString(first, strings.Repeat("x", length)); err != nil {
		t.Fatal(err)
	}
	if resp, text := answered(first); resp.StatusCode != 401 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	hangs("192.0.2.9")   // another client
	hangs("2001:db8::1") // there is room again, and none of those that were refused counts against it
}
