package webhook

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// PayPal signs with the key of a certificate that the webhook names by its URL.
// https://developer.paypal.com/api/rest/webhooks/rest/
const (
	payPalID        = "Paypal-Transmission-Id"
	payPalTime      = "Paypal-Transmission-Time"
	payPalSignature = "Paypal-Transmission-Sig"
	payPalURL       = "Paypal-Cert-Url"
	payPalAlgorithm = "Paypal-Auth-Algo"
)

// PayPalTolerance is the default for PayPal, which delivers a webhook again for three days, perhaps with the time of
// the first delivery: its documentation leaves that open.
const PayPalTolerance = 73 * time.Hour

// mostPayPalTolerance bounds it.
const mostPayPalTolerance = 96 * time.Hour

var (
	payPalWebhook      = regexp.MustCompile(`^[A-Za-z0-9]{1,50}$`)
	payPalTransmission = regexp.MustCompile(`^[A-Za-z0-9_-]{1,50}$`)
	payPalName         = regexp.MustCompile(`^CERT-[A-Za-z0-9-]{1,100}$`)
)

// payPal verifies the webhooks of one webhook's id.
type payPal struct {
	issuer    Issuer
	webhook   string
	tolerance time.Duration
}

// PayPal verifies PayPal's webhooks by the certificates of an issuer. The webhook is its id at PayPal, which is part
// of what is signed. The tolerance is 1s to 96h; 0 is PayPalTolerance. A [Delivery] needs its Certificate.
func PayPal(issuer Issuer, webhook string, tolerance time.Duration) (Verifier, error) {
	switch {
	case !payPalWebhook.MatchString(webhook):
		return nil, errors.New("the id of the webhook must have 1 to 50 letters and digits, such as 9XL90610J3647323C: take it from the list of webhooks at PayPal, and not from an event")
	case tolerance == 0:
		tolerance = PayPalTolerance
	case tolerance < time.Second || tolerance > mostPayPalTolerance:
		return nil, errors.New("the tolerance must be 1s to 96h")
	}
	return &payPal{issuer, webhook, tolerance}, nil
}

// payPalHead is what the head of a webhook has of a signature.
type payPalHead struct{ id, time, url, algorithm, signature string }

func readPayPalHead(from http.Header) (h payPalHead, err error) {
	for _, part := range []struct {
		name string
		into *string
	}{{payPalID, &h.id}, {payPalTime, &h.time}, {payPalSignature, &h.signature}, {payPalURL, &h.url}, {payPalAlgorithm, &h.algorithm}} {
		if *part.into, err = header(from, part.name); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (p *payPal) Look(m *Delivery, now time.Time) error {
	_, _, err := p.head(m, now)
	return err
}

func (p *payPal) Verify(m *Delivery, now time.Time) error {
	h, signature, err := p.head(m, now)
	if err != nil {
		return err
	}
	key, err := m.Certificate(h.url)
	if err != nil {
		return err
	}
	signed := fmt.Sprintf("%s|%s|%s|%d", h.id, h.time, p.webhook, crc32.ChecksumIEEE(m.Body))
	digest := sha256.Sum256([]byte(signed))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) != nil {
		return refused("the signature does not fit the body and the id of the webhook: see that the id is the one of this endpoint at PayPal, and that nothing before this server changes the body")
	}
	return nil
}

// head reads and checks all that is not the body. No byte of it can be moved to another part of what is signed.
func (p *payPal) head(m *Delivery, now time.Time) (h payPalHead, signature []byte, err error) {
	if h, err = readPayPalHead(m.Header); err != nil {
		return h, nil, err
	}
	switch {
	case !strings.EqualFold(h.algorithm, "SHA256withRSA"):
		return h, nil, unreadable("the header %s is not SHA256withRSA, the only algorithm that is accepted", payPalAlgorithm)
	case !payPalTransmission.MatchString(h.id):
		return h, nil, unreadable("the header %s is no id", payPalID)
	case !p.issuer.has(h.url):
		return h, nil, unreadable("the header %s is no URL of a certificate at %s: see that the webhook comes from PayPal, and not from its sandbox for a live endpoint", payPalURL, p.issuer.Host)
	}
	if signature, err = base64.StdEncoding.DecodeString(h.signature); err != nil {
		return h, nil, unreadable("the header %s is no base64", payPalSignature)
	}
	at, err := time.Parse(time.RFC3339, h.time)
	if err != nil {
		return h, nil, unreadable("the header %s is no time such as 2026-09-21T22:00:46Z", payPalTime)
	}
	return h, signature, near(at, p.tolerance, now)
}
