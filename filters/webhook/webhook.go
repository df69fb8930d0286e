package webhook

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"time"
)

// Fault is why a webhook is not accepted. It never repeats anything of a secret.
type Fault struct {
	// Status is 400 where the request is not of the scheme, 401 where its signature or its
	// time is wrong.
	Status int
	// Text says what is wrong, and what to look at.
	Text string
}

func (f *Fault) Error() string { return f.Text }

func unreadable(format string, args ...any) error {
	return &Fault{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) error {
	return &Fault{http.StatusUnauthorized, fmt.Sprintf(format, args...)}
}

// Delivery is a webhook as it came.
type Delivery struct {
	Header http.Header
	// URI is the path with the query, as the client sent them.
	URI string
	// Body is nil until it is read.
	Body []byte
	// Certificate returns the key of a certificate of the preset's Issuer, by its URL, which the
	// verifier has checked. Verify passes its error on. Needed where the preset has an Issuer.
	Certificate func(url string) (*rsa.PublicKey, error)
}

// Verifier verifies the webhooks of one secret. It is safe for concurrent use.
type Verifier interface {
	// Look checks what the head alone tells, before the body is read: whether there is a
	// signature, and whether its time is within the tolerance. The error is a *Fault.
	Look(m *Delivery, now time.Time) error
	// Verify checks all of the request. The error is a *Fault, or the error of Certificate.
	Verify(m *Delivery, now time.Time) error
}

// Look returns nil if one of the verifiers accepts the head, otherwise what the last one says.
func Look(all []Verifier, m *Delivery, now time.Time) error {
	return each(all, func(v Verifier) error { return v.Look(m, now) })
}

// Verify returns nil if one of the verifiers accepts the request, otherwise what the last one
// says: while a secret is changed, two are valid.
func Verify(all []Verifier, m *Delivery, now time.Time) error {
	return each(all, func(v Verifier) error { return v.Verify(m, now) })
}

func each(all []Verifier, accepts func(Verifier) error) error {
	err := refused("no secret is configured")
	for _, v := range all {
		if err = accepts(v); err == nil {
			return nil
		}
	}
	return err
}

// header returns the value of a header that must be there once.
func header(h http.Header, name string) (string, error) {
	switch values := h.Values(name); {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", unreadable("the header %s is missing: the request is not signed", name)
	case len(values) > 1:
		return "", unreadable("the header %s is there %d times", name, len(values))
	default:
		return values[0], nil
	}
}

var errNoneFits = refused("no signature fits the body and any of the secrets: see that the secret is that of this endpoint, and that nothing before this server changes the body")
