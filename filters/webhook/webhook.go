package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultTolerance is how far a signed time may be from now where nothing else is said: what
// Stripe's and the Standard Webhooks libraries allow.
const DefaultTolerance = 5 * time.Minute

// maxSignatures bounds the signatures in one header that are compared.
const maxSignatures = 16

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

// Verifier verifies the webhooks of one secret. It is safe for concurrent use.
type Verifier interface {
	// Look checks what the headers alone tell, before the body is read: whether there is a
	// signature, and whether its time is within the tolerance. The error is a *Fault.
	Look(h http.Header, now time.Time) error
	// Verify checks all of the request. The error is a *Fault.
	Verify(h http.Header, body []byte, now time.Time) error
}

// Look returns nil if one of the verifiers accepts the headers, otherwise what the last one
// says.
func Look(all []Verifier, h http.Header, now time.Time) error {
	return each(all, func(v Verifier) error { return v.Look(h, now) })
}

// Verify returns nil if one of the verifiers accepts the request, otherwise what the last one
// says: while a secret is changed, two are valid.
func Verify(all []Verifier, h http.Header, body []byte, now time.Time) error {
	return each(all, func(v Verifier) error { return v.Verify(h, body, now) })
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

// inTime checks a signed time in seconds.
func inTime(text string, tolerance time.Duration, now time.Time) error {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 || text != strconv.FormatInt(seconds, 10) {
		return unreadable("the signature's timestamp is no time in seconds")
	}
	age := now.Sub(time.Unix(seconds, 0)).Round(time.Second)
	switch {
	case age > tolerance:
		return refused("the signature's timestamp is %v old, and %v are allowed: the request was delayed or is a replay, or this server's clock is ahead", age, tolerance)
	case age < -tolerance:
		return refused("the signature's timestamp is %v ahead, and %v are allowed: this server's clock may be late", -age, tolerance)
	}
	return nil
}

var errNoneFits = refused("no signature fits the body and any of the secrets: see that the secret is that of this endpoint, and that nothing before this server changes the body")

// fits reports whether one of the signatures is that of a message; it compares all, each in
// constant time.
func fits(mac hash.Hash, signatures [][]byte) error {
	want, good := mac.Sum(nil), false
	for _, s := range signatures {
		good = hmac.Equal(s, want) || good
	}
	if !good {
		return errNoneFits
	}
	return nil
}

type stripe struct {
	key       []byte
	tolerance time.Duration
}

// Stripe verifies webhooks of Stripe. 0 is the default tolerance.
func Stripe(secret string, tolerance time.Duration) (Verifier, error) {
	if secret == "" {
		return nil, errors.New("the secret is empty")
	}
	tolerance, err := tolerated(tolerance)
	return &stripe{[]byte(secret), tolerance}, err
}

func tolerated(tolerance time.Duration) (time.Duration, error) {
	switch {
	case tolerance == 0:
		return DefaultTolerance, nil
	case tolerance < time.Second || tolerance > time.Hour:
		return 0, errors.New("the tolerance must be 1s to 1h")
	}
	return tolerance, nil
}

func (s *stripe) read(h http.Header, now time.Time) (at string, signatures [][]byte, err error) {
	text, err := header(h, "Stripe-Signature")
	if err != nil {
		return "", nil, err
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case name == "t" && at != "":
			return "", nil, unreadable("Stripe-Signature has two timestamps")
		case name == "t":
			at = value
		case name == "v1" && len(signatures) < maxSignatures:
			if raw, err := hex.DecodeString(value); err == nil {
				signatures = append(signatures, raw)
			}
		}
	}
	switch {
	case at == "":
		return "", nil, unreadable("Stripe-Signature has no timestamp t")
	case len(signatures) == 0:
		return "", nil, unreadable("Stripe-Signature has no signature v1")
	}
	return at, signatures, inTime(at, s.tolerance, now)
}

func (s *stripe) Look(h http.Header, now time.Time) error {
	_, _, err := s.read(h, now)
	return err
}

func (s *stripe) Verify(h http.Header, body []byte, now time.Time) error {
	at, signatures, err := s.read(h, now)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return fits(mac, signatures)
}

type standard struct {
	key       []byte
	tolerance time.Duration
}

// Standard verifies Standard Webhooks. The secret is base64, perhaps behind whsec_. 0 is the
// default tolerance.
func Standard(secret string, tolerance time.Duration) (Verifier, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, errors.New("the secret is no base64 behind whsec_")
	}
	if len(key) < 16 {
		return nil, fmt.Errorf("the secret has %d bytes behind whsec_, at least 16 are needed", len(key))
	}
	tolerance, err = tolerated(tolerance)
	return &standard{key, tolerance}, err
}

func (s *standard) read(h http.Header, now time.Time) (id, at string, signatures [][]byte, err error) {
	if id, err = header(h, "Webhook-Id"); err != nil {
		return "", "", nil, err
	}
	if at, err = header(h, "Webhook-Timestamp"); err != nil {
		return "", "", nil, err
	}
	list, err := header(h, "Webhook-Signature")
	if err != nil {
		return "", "", nil, err
	}
	for part := range strings.FieldsSeq(list) {
		version, value, _ := strings.Cut(part, ",")
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil && version == "v1" && len(signatures) < maxSignatures {
			signatures = append(signatures, raw)
		}
	}
	if len(signatures) == 0 {
		return "", "", nil, unreadable("Webhook-Signature has no signature v1")
	}
	return id, at, signatures, inTime(at, s.tolerance, now)
}

func (s *standard) Look(h http.Header, now time.Time) error {
	_, _, _, err := s.read(h, now)
	return err
}

func (s *standard) Verify(h http.Header, body []byte, now time.Time) error {
	id, at, signatures, err := s.read(h, now)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return fits(mac, signatures)
}

type plain struct {
	header, algorithm string
	key               []byte
	hash              func() hash.Hash
}

// HMAC verifies a header that has the HMAC of the body. The algorithm is sha256 or sha512.
func HMAC(name, algorithm, key string) (Verifier, error) {
	hashes := map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}
	switch {
	case name == "":
		return nil, errors.New("the header is not named")
	case hashes[algorithm] == nil:
		return nil, fmt.Errorf("there is no algorithm %q: there are sha256 and sha512", algorithm)
	case len(key) < 8:
		return nil, errors.New("the key is empty or shorter than 8 bytes")
	}
	return &plain{http.CanonicalHeaderKey(name), algorithm, []byte(key), hashes[algorithm]}, nil
}

func (p *plain) read(h http.Header) ([]byte, error) {
	text, err := header(h, p.header)
	if err != nil {
		return nil, err
	}
	text = strings.TrimPrefix(text, p.algorithm+"=")
	size := p.hash().Size()
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == size {
		return raw, nil
	}
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) == size {
		return raw, nil
	}
	return nil, unreadable("the header %s is no %s in hex or base64", p.header, p.algorithm)
}

func (p *plain) Look(h http.Header, _ time.Time) error {
	_, err := p.read(h)
	return err
}

func (p *plain) Verify(h http.Header, body []byte, _ time.Time) error {
	signature, err := p.read(h)
	if err != nil {
		return err
	}
	mac := hmac.New(p.hash, p.key)
	mac.Write(body)
	return fits(mac, [][]byte{signature})
}
