package fast_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// In a bypass no connection answers for its gate, whatever it remembers.
func TestFastBypass(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := sitetest.OpenFast(t, "", sitetest.BenchOut)
	s.SellOut()
	buy := func() string {
		return s.Raw(s.Fast, "GET /buy?sku=out HTTP/1.1\r\nHost: sell.example.com\r\nX-User-Id: u2\r\n\r\n", 1)
	}
	if a := buy(); !strings.Contains(a, "sold_out") && !strings.Contains(a, "all_held") {
		t.Fatalf("it is not sold out: %s", a)
	}
	sitetest.Do[any](s.Site, "POST", "/stockgate/gates/sell/bypass", `{"for":"1h"}`)
	before := s.FastAnswers()
	if a := buy(); !strings.HasPrefix(a, "HTTP/1.1 201") || s.FastAnswers() != before {
		t.Errorf("it does not pass: %s", a)
	}
}
