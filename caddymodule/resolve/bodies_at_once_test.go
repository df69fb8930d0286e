package resolve_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// Bodies of one client that no signature was checked of are bounded. A body that has come makes
// room, and what is refused is answered without waiting for its body.
func TestWebhookBodiesAtOnce(t *testing.T) {
	s := sitetest.OpenFast(t, "trusted_proxies static 127.0.0.0/8", `
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
	want := "64 are read; 429 too many webhooks of this address are being read: deliver it again; 429 too many webhooks of this address are being read: deliver it again; " +
		"the first: 401; another client is read; one more is read"
	for network := 1; ; network++ {
		began := time.Now()
		got := bodiesAtOnce(s, fmt.Sprintf("2001:db8:%x::", network))
		if time.Since(began) > 9*time.Second {
			continue // a body has 10 s to come, and this machine was slower
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		return
	}
}

// bodiesAtOnce says what becomes of webhooks of a network whose bodies do not come.
func bodiesAtOnce(s *sitetest.FastSite, network string) string {
	const length = 100
	signature := signed("another body", hookSecret, time.Now()).Header.Get("Stripe-Signature")
	begin := func(from, more string) *sitetest.RawConn {
		c := s.Open(s.Plain)
		s.T.Cleanup(func() { c.Close() })
		if _, err := fmt.Fprintf(c, "POST /hook HTTP/1.1\r\nHost: shop.example.com\r\nX-Forwarded-For: %s\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n%s\r\n", from, signature, length, more); err != nil {
			s.T.Fatal(err)
		}
		return c
	}
	hangs := func(from string) (*sitetest.RawConn, bool) { // until the edge reads its body
		c := begin(from, "Expect: 100-continue\r\n")
		line, _ := c.R.ReadString('\n')
		_, _ = c.R.ReadString('\n')
		return c, strings.HasPrefix(line, "HTTP/1.1 100 ")
	}
	answered := func(c *sitetest.RawConn) (status int, text string) {
		resp, err := http.ReadResponse(bufio.NewReader(c.R), nil)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if status = resp.StatusCode; status == 429 && resp.Header.Get("Retry-After") == "" {
			return status, "without Retry-After"
		}
		return status, strings.TrimSpace(string(body))
	}
	first, hang := hangs(network + "1")
	hanging := 0
	for i := 2; hang; i++ {
		if hanging++; hanging == 64 {
			break
		}
		_, hang = hangs(fmt.Sprintf("%s%x", network, i))
	}
	said := []string{fmt.Sprint(hanging, " are read")}
	for _, more := range []string{"", "Expect: 100-continue\r\n"} {
		status, text := answered(begin(network+"1:1", more))
		said = append(said, fmt.Sprint(status, " ", text))
	}
	_, _ = io.WriteString(first, strings.Repeat("x", length))
	status, _ := answered(first)
	said = append(said, fmt.Sprint("the first: ", status))
	if _, hang := hangs("192.0.2.9"); hang {
		said = append(said, "another client is read")
	}
	if _, hang := hangs(network + "1"); hang { // none of those that were refused counts against it
		said = append(said, "one more is read")
	}
	return strings.Join(said, "; ")
}
