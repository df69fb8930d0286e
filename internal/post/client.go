package post

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxAnswer bounds how much of an answer, and of its header, is read.
	maxAnswer = 64 << 10
	// maxWait bounds what the receiver may ask for with Retry-After.
	maxWait = 5 * time.Minute
)

// NewClient connects to the receiver only: it follows no redirect.
func NewClient() *http.Client {
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

// Receipt is a receiver's answer to a message.
type Receipt struct {
	Status int // 0: none
	Err    error
	After  time.Duration // its Retry-After; 0: none
}

// Do sends a request once.
func Do(c *http.Client, request *http.Request) Receipt {
	response, err := c.Do(request)
	if err != nil {
		return Receipt{Err: withoutURL(err)}
	}
	defer response.Body.Close()
	// read to reuse the connection; the content does not matter
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	return Receipt{Status: response.StatusCode, After: RetryAfter(response.Header.Get("Retry-After"))}
}

// Accepted reports whether the receiver has it.
func (a Receipt) Accepted() bool { return a.Status >= 200 && a.Status < 300 }

// Refused reports whether the receiver refused it, so that an early retry is of no use.
func (a Receipt) Refused() bool {
	switch a.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return a.Status != 0 && a.Status < 500
}

// Class is the answer as a metric label: 2xx, 3xx, 4xx, 5xx or none.
func (a Receipt) Class() string {
	if a.Status == 0 {
		return "none"
	}
	return strconv.Itoa(a.Status/100) + "xx"
}

// RetryAfter reads the header of that name (RFC 9110, section 10.2.3).
func RetryAfter(text string) time.Duration {
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
