package outbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/outbox"
)

// The signature is that of other implementations of Standard Webhooks.
func TestSign(t *testing.T) {
	secret, err := outbox.ParseSecret(oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	outbox.Sign(h, secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	for name, want := range map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	} {
		if have := h.Get(name); have != want {
			t.Errorf("%s is %s, want %s", name, have, want)
		}
	}
}

func TestParseSecret(t *testing.T) {
	for _, good := range []string{oldSecret, strings.TrimPrefix(oldSecret, "whsec_"), "whsec_" + strings.Repeat("YWFh", 21)} {
		if _, err := outbox.ParseSecret(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, says := range map[string]string{
		"":                                    "it has 0 bytes",
		"whsec_":                              "it has 0 bytes",
		"whsec_s3cret":                        "no secret of Standard Webhooks",
		"whsk_" + strings.Repeat("s", 40):     "no secret of Standard Webhooks",
		"whsec_" + strings.Repeat("c2Vj", 7):  "it has 21 bytes",
		"whsec_" + strings.Repeat("c2Vj", 22): "it has 66 bytes",
	} {
		if _, err := outbox.ParseSecret(bad); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "c2Vj") {
			t.Errorf("%q: %v, it should say %q", bad, err, says)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "7": 7 * time.Second, "86400": 5 * time.Minute, "Wed, 21 Oct 2015 07:28:00 GMT": 0,
		"Fri, 31 Dec 2199 23:59:59 GMT": 5 * time.Minute,
	} {
		if have := outbox.RetryAfter(text); have != want {
			t.Errorf("%q is %v, want %v", text, have, want)
		}
	}
}
