package webhook_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/webhook"
)

// TestRecognisesWhatProvidersSign reads what the providers' own libraries sign, without their keys.
func TestRecognisesWhatProvidersSign(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range readVectors(t).Cases {
		if c.Scheme == "signed" || !c.Accepted {
			continue
		}
		seen[c.Scheme] = true
		if got := webhook.Recognise(message(headers(c.Headers), c.Body)); !slices.Equal(got, []string{c.Scheme}) {
			t.Errorf("%s: %q, not %s", c.Name, got, c.Scheme)
		}
	}
	if len(seen) < 7 {
		t.Errorf("only %v", seen)
	}
}

func TestRecogniseNothing(t *testing.T) {
	for name, m := range map[string]*webhook.Delivery{
		"nothing":              message(http.Header{}, ""),
		"a browser's order":    message(headers(map[string]string{"Cookie": "sid=1", "X-Csrf-Token": strings.Repeat("ab", 32)}), `{"sku":"A"}`),
		"no signature":         message(headers(map[string]string{"Stripe-Signature": "t=1"}), `{}`),
		"a signature too long": message(headers(map[string]string{"X-Signature": strings.Repeat("ab", 33)}), `{}`),
		"two in one header":    message(http.Header{"X-Signature": {strings.Repeat("ab", 32), strings.Repeat("ab", 32)}}, `{}`),
		"another body":         message(http.Header{}, `{"notificationItems":[]}`),
	} {
		if got := webhook.Recognise(m); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := webhook.Recognise(message(headers(map[string]string{"X-Hub-Signature-256": "sha256=" + strings.Repeat("ab", 32)}), "")); !slices.Equal(got, []string{"hmac X-Hub-Signature-256 sha256"}) {
		t.Error(got)
	}
}
