package resolve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
)

const (
	defaultAskTimeout = 5 * time.Second
	mostAskTimeout    = 30 * time.Second
	maxAnswer         = 64 << 10 // bytes, of the body and of the header
)

// AskProvider is how a provider is asked about the payment that its webhook names: the webhook has an id and is
// not signed, and the provider's answer is judged in its place.
type AskProvider struct {
	// URL is the https URL of one payment, with {id} in its path or query. Redirects are not
	// followed. Required.
	URL string `json:"url"`
	// ID is where the webhook has the id, of 1 to 128 of `A-Z a-z 0-9 _ -`; another one is 400, and nothing is
	// asked. Required.
	ID string `json:"id"`
	// Bearer is the key of the provider's API, from `{env.NAME}` or `{file./path}`. Required.
	Bearer string `json:"bearer"`
	// Timeout is how long the provider may take, up to 30s. Default: 5s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// CA is a PEM file with the certificates that are trusted. Default: the system's.
	CA string `json:"ca,omitempty"`
}

// asker asks a provider.
type asker struct {
	url     *shopurl.URL
	id      idSource
	bearer  string
	timeout time.Duration
	client  *http.Client
	limits  *askLimits
	log     *zap.Logger
}

func (a *AskProvider) compile(log *zap.Logger) (*asker, error) {
	timeout := time.Duration(a.Timeout)
	if timeout == 0 {
		timeout = defaultAskTimeout
	}
	if timeout < 0 || timeout > mostAskTimeout {
		return nil, fmt.Errorf("timeout is %v: it must be at most %v", timeout, mostAskTimeout)
	}
	u, err := shopurl.Compile("ask", a.URL, func(name string) bool { return name == "id" }, "{id}")
	if err != nil {
		return nil, err
	}
	switch text, _ := u.Fill(func(string) string { return "a" }); {
	case !strings.HasPrefix(text, "https://"):
		return nil, errors.New("the URL of ask must be https: the answer decides what is paid")
	case !u.Has("id"):
		return nil, errors.New("the URL of ask has no {id}: every payment would get the same answer")
	}
	id, err := readID(a.ID)
	if err != nil {
		return nil, err
	}
	bearer, err := directive.FillSecret(a.Bearer)
	if err != nil {
		return nil, fmt.Errorf("bearer %w", err)
	}
	if bearer = strings.TrimSpace(bearer); strings.ContainsFunc(bearer, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("bearer has a space or a control character in it: it is the key alone, without `Bearer`")
	}
	roots, err := readRoots(a.CA)
	if err != nil {
		return nil, err
	}
	client := shopurl.NewClient(askAtOnce, maxAnswer)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	return &asker{u, id, bearer, timeout, client, newAskLimits(), log}, nil
}

// readRoots reads the certificates of a file that are trusted in place of the system's; nil: there is none.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: %s has no certificate in PEM", file)
	}
	return roots, nil
}

// about returns the provider's answer about the payment that a webhook names.
func (a *asker) about(r *http.Request, body []byte, client string) ([]byte, *refusal) {
	id := a.id.in(r.URL, body)
	if !isID(id) {
		return nil, &refusal{status: http.StatusBadRequest, counts: meter.WebhookUnreadable, text: "the webhook has no id of a payment: 1 to 128 of A-Z a-z 0-9 _ and -"}
	}
	done, no := a.limits.begin(client, time.Now())
	if no != nil {
		return nil, no
	}
	defer done()
	status, answer, err := a.get(r.Context(), id)
	switch {
	case err != nil:
		return nil, a.failed("a payment provider that is asked about a webhook does not answer", zap.Error(err))
	case status == http.StatusNotFound || status == http.StatusGone:
		return nil, &refusal{status: http.StatusNotFound, counts: meter.WebhookUnauthorized, text: "the provider does not know this payment"}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, a.failed("a payment provider refuses the key with which it is asked about a webhook: see `bearer` of ask", zap.Int("status", status))
	case status != http.StatusOK:
		return nil, a.failed("a payment provider that is asked about a webhook gives no answer about it", zap.Int("status", status))
	case len(answer) > maxAnswer || !json.Valid(answer):
		return nil, a.failed("a payment provider that is asked about a webhook answers with no JSON, or more than 64 KiB of it")
	}
	a.limits.prove(client)
	return answer, nil
}

// get asks, and returns up to one byte more of the answer than it may have.
func (a *asker) get(ctx context.Context, id string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	at, _ := a.url.Fill(func(string) string { return id })
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, nil, errors.New("the URL cannot be asked")
	}
	question.Header = http.Header{"Authorization": {"Bearer " + a.bearer}, "Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"stockgate"}}
	answer, err := a.client.Do(question)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return 0, nil, wrapped.Err // without the URL, which has the id
	} else if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	return answer.StatusCode, body, err
}

// failed says that the provider could not be heard.
func (a *asker) failed(what string, fields ...zap.Field) *refusal {
	a.log.Error(what+": the provider delivers the webhook again", append(fields, zap.String("host", a.url.Host))...)
	return unavailable(meter.WebhookProviderFailed, "the provider did not answer about this payment: deliver it again")
}
