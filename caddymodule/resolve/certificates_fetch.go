package resolve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/webhook"
)

const maxCertificate = 64 << 10 // bytes, of the body and of the header

// fetchTimeout bounds a fetch; tests shorten it.
var fetchTimeout = 5 * time.Second

// dialIssuer connects to an issuer, at public addresses alone.
var dialIssuer = (&net.Dialer{Timeout: fetchTimeout, ControlContext: onlyPublic}).DialContext

// fetcher fetches and verifies the certificates of an issuer.
type fetcher struct {
	issuer webhook.Issuer
	client *http.Client
	roots  *x509.CertPool // nil: the system's
	log    *zap.Logger
}

// newFetcher returns one that trusts the certificates of a file, or the system's where there is none.
func newFetcher(issuer webhook.Issuer, ca string, log *zap.Logger) (*fetcher, error) {
	roots, err := readRoots(ca)
	if err != nil {
		return nil, err
	}
	client := shopurl.NewClient(fetchAtOnce, maxCertificate)
	transport := client.Transport.(*http.Transport)
	transport.DialContext = dialIssuer
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.DisableKeepAlives = true // there is a fetch an hour
	return &fetcher{issuer, client, roots, log}, nil
}

// fetch returns a certificate that was verified. One that cannot be trusted came from the issuer's own host, and is no
// fault of the client.
func (f *fetcher) fetch(at string) (*certificate, *refusal) {
	status, body, beside, err := f.get(at)
	switch {
	case err != nil:
		return nil, f.failed(at, "cannot be fetched", zap.Error(err))
	case status == http.StatusNotFound || status == http.StatusGone:
		return nil, &refusal{status: http.StatusUnauthorized, counts: meter.WebhookUnauthorized, text: "the provider has no certificate at the URL that the webhook names"}
	case status != http.StatusOK:
		return nil, f.failed(at, "cannot be fetched", zap.Int("status", status))
	case len(body) > maxCertificate:
		return nil, f.failed(at, "is larger than 64 KiB")
	}
	found, err := verifyCertificate(body, beside, f.issuer.Name, f.roots, time.Now())
	if err != nil {
		return nil, f.failed(at, "is not trusted", zap.Error(err))
	}
	return found, nil
}

// get returns up to one byte more than an answer may have, and the certificates of the connection, which has
// verified them.
func (f *fetcher) get(at string) (status int, body []byte, beside []*x509.Certificate, err error) {
	// others may wait for it too, so that it does not end with one request
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, nil, nil, errors.New("the URL cannot be fetched")
	}
	question.Header = http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"stockgate"}}
	answer, err := f.client.Do(question)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return 0, nil, nil, wrapped.Err
	} else if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(answer.Body, maxCertificate+1)); err != nil {
		return 0, nil, nil, fmt.Errorf("the answer ends early: %w", err)
	}
	return answer.StatusCode, body, answer.TLS.PeerCertificates, nil
}

func (f *fetcher) failed(at, what string, fields ...zap.Field) *refusal {
	f.log.Error("the certificate with which a payment provider signs its webhooks "+what+": the provider delivers the webhook again", append(fields, zap.String("url", at))...)
	return unavailable(meter.WebhookProviderFailed, "the provider's certificate "+what+": deliver the webhook again")
}
