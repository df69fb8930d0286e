package caddymodule

import (
	"context"
	"testing"
	"time"

	"github.com/stockgate/stockgate/sale"
)

// OpenJWT returns what a gate asks about a token from an address at a time; the text is the
// reason of a refusal, and wait its Retry-After.
func OpenJWT(t *testing.T, j *JWT) func(token, clientIP string, at time.Time) (reason sale.Reason, wait int64) {
	t.Helper()
	key, v, err := j.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeVerifier(key) })
	return func(token, clientIP string, at time.Time) (sale.Reason, int64) {
		_, no := v.claimsOf(context.Background(), token, v.limitFor(clientIP, at))
		if no == nil {
			return "", 0
		}
		return no.Reason, no.RetryAfter
	}
}
