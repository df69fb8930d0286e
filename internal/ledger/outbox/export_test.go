package outbox

import (
	"net/http"
	"time"
)

// Sign is sign with one secret.
func Sign(h http.Header, s Secret, id string, at time.Time, body []byte) {
	sign(h, []Secret{s}, id, at, body)
}

// Lease is how long a dead edge keeps the others waiting.
const Lease = lease

// RetryAfter is retryAfter.
var RetryAfter = retryAfter
