package refuse

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const (
	RateLimitHeader  = "Ratelimit" // as net/http writes RateLimit
	RatePolicyHeader = "Ratelimit-Policy"
)

// mostPrepared bounds the waits, in seconds, whose answers are made in advance.
const mostPrepared = 60

// rateReply is the answer to a client that has to wait for a number of seconds. It is
// shared: callers must not change it.
type rateReply struct {
	left []string // the header RateLimit
	no   *sale.Refusal
}

// RateAnswers prepares the answers to clients that a rate refuses.
type RateAnswers struct {
	name   string // as a string of a structured field
	policy []string
	// prepared holds the answers to waits of one second and more.
	prepared []rateReply
}

// NewRateAnswers prepares the answers of a rate that lets events through per window. The rate's
// name in the headers is the name of the gate and its own name there. The policy is that of
// draft-ietf-httpapi-ratelimit-headers-11, section 3; its window is in whole seconds.
func NewRateAnswers(gate, own string, events int, per time.Duration) RateAnswers {
	if gate == "" {
		gate = "rate"
	}
	name := sfString(gate + "-" + own)
	window := int64(per)
	seconds := (window + int64(time.Second) - 1) / int64(time.Second)
	quota := int64(events) * (seconds * int64(time.Second) / int64(time.Millisecond)) / (window / int64(time.Millisecond))
	rate := RateAnswers{name: name, policy: []string{fmt.Sprintf("%s;q=%d;w=%d", name, quota, seconds)}}
	longest := WaitSeconds(time.Duration(window / int64(events)))
	for n := range min(max(longest, 1), mostPrepared) {
		rate.prepared = append(rate.prepared, rate.answer(n+1))
	}
	return rate
}

func (r *RateAnswers) answer(seconds int64) rateReply {
	return rateReply{
		left: []string{r.name + ";r=0;t=" + strconv.FormatInt(seconds, 10)},
		no:   &sale.Refusal{Reason: sale.RateLimited, RetryAfter: seconds},
	}
}

// Refuse sets the headers that say what the client may still do, and until when
// (section 4 of the draft). It returns the refusal.
func (r *RateAnswers) Refuse(h http.Header, wait time.Duration) *sale.Refusal {
	var a rateReply
	if seconds := WaitSeconds(wait); seconds >= 1 && seconds <= int64(len(r.prepared)) {
		a = r.prepared[seconds-1]
	} else {
		a = r.answer(seconds)
	}
	h[RatePolicyHeader] = r.policy
	h[RateLimitHeader] = a.left
	return a.no
}

// WaitSeconds returns a wait in whole seconds, rounded up.
func WaitSeconds(wait time.Duration) int64 { return int64((wait + time.Second - 1) / time.Second) }

// sfString writes a text as a String of RFC 9651, section 3.3.3, which has only
// printable ASCII; any other character becomes a hyphen.
func sfString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c > '~':
			b.WriteByte('-')
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
