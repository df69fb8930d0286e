package resolve_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Many webhooks at once fetch one certificate, and forged names few.
func TestPayPalFetchesAreBounded(t *testing.T) {
	h, p := openPaid(t)
	var all sync.WaitGroup
	for range 20 {
		r := p.signs(t, captured("SO-1"))
		all.Go(func() {
			if a := h.Send(r); a.Status != 200 {
				t.Error(status(a))
			}
		})
	}
	all.Wait()
	if n := p.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	p.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	limited := func() bool {
		for i := range 1000 {
			a := h.Send(p.signs(t, captured("SO-1"), "Paypal-Cert-Url", fmt.Sprintf("https://%s%s-%d", payPalHost, payPalPath, i)))
			if a.Status == 429 {
				return strings.Contains(a.Body, "with a certificate that is not known")
			}
		}
		return false
	}
	if !limited() {
		t.Error("forged names are fetched without end, or count as not accepted")
	}
	if a := h.Send(p.signs(t, captured("SO-1"))); a.Status != 200 {
		t.Errorf("one that is known: %s", status(a))
	}
}
