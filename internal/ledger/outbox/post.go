package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// answerMost bounds how much of an answer, and of its header, is read.
	maxAnswer = 64 << 10
	// waitMost bounds what the receiver may ask for with Retry-After.
	maxWait = 5 * time.Minute
)

// newClient connects to the receiver only: it follows no redirect.
func newClient() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: maxAnswer,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
		},
	}
}

// answer is the receiver's answer to a batch.
type answer struct {
	status int // 0: none
	err    error
	after  time.Duration // its Retry-After; 0: none
}

// accepted reports whether the receiver has it.
func (a answer) accepted() bool { return a.status >= 200 && a.status < 300 }

// refused reports whether the receiver refused it, so that an early retry is of no use.
func (a answer) refused() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return a.status != 0 && a.status < 500
}

// class is the answer as a metric label.
func (a answer) class() string {
	if a.status == 0 {
		return "none"
	}
	return strconv.Itoa(a.status/100) + "xx"
}

// fault says what is wrong with an answer, for the log.
func (a answer) fault() error {
	switch {
	case a.accepted():
		return nil
	case a.status == 0:
		return fmt.Errorf("the receiver does not answer: %w", a.err)
	case a.status >= 300 && a.status < 400:
		return fmt.Errorf("the receiver answers %d, which leads elsewhere, and the outbox does not follow: configure the URL that takes the movements", a.status)
	case a.refused():
		return fmt.Errorf("the receiver answers %d: it refuses what it is sent, see its log; nothing is skipped, it gets the same again now and then", a.status)
	}
	return fmt.Errorf("the receiver answers %d", a.status)
}

// post sends a batch once.
func (o *Outbox) post(ctx context.Context, b *batch) answer {
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.options.URL, bytes.NewReader(b.body))
	if err != nil {
		return answer{err: errors.New("its URL cannot be used")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stockgate")
	sign(request.Header, o.options.Secrets, b.id, time.Now(), b.body)
	response, err := o.client.Do(request)
	if err != nil {
		return answer{err: withoutURL(err)}
	}
	defer response.Body.Close()
	// read to reuse the connection; the content does not matter
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	return answer{status: response.StatusCode, after: retryAfter(response.Header.Get("Retry-After"))}
}

// retryAfter reads the header of that name (RFC 9110, section 10.2.3).
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(seconds)*time.Second, 0), maxWait)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), maxWait)
	}
	return 0
}

// withoutURL is the error without the URL, which may contain a secret.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
