package outbox

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/post"
)

// Sign is post.Sign with one secret.
func Sign(h http.Header, s Secret, id string, at time.Time, body []byte) {
	post.Sign(h, []Secret{s}, id, at, body)
}

// Lease is how long a dead edge keeps the others waiting.
const Lease = lease

// RetryAfter is post.RetryAfter.
var RetryAfter = post.RetryAfter
