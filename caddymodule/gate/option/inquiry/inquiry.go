// Package inquiry asks the shop about an order in the buyer's name: what is in the cart, and
// whether the order was placed. It is for shops whose order request does not say what it buys.
package inquiry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/outcome"
)

// Spec is a question to the shop. It is sent with the header and the query of the buyer's
// request, without what is about its body, its cache or its repetition, and without
// Stockgate-*. What the shop answers is for the edge only: cookies that it sets are dropped,
// and redirects are not followed.
type Spec struct {
	// Method is GET or POST.
	Method string `json:"method"`
	// URL is an http or https URL. `{ref}` is the shop's own name of the order, `{jwt.PATH}` a
	// claim of the buyer's token and, in a question how an order ended, `{lookup.PATH}` what the
	// shop said about the cart and `{answer.PATH}` what it answered to the order; each escaped for its position. Other placeholders, such as
	// {env.SHOP}, are filled in when the configuration loads.
	URL string `json:"url"`
	// Body is a JSON object, of a POST. The placeholders of the URL may stand in strings of it;
	// all other braces are literal.
	Body string `json:"body,omitempty"`
	// AtOnce is how many questions of this gate an edge has under way. Default: 16.
	AtOnce int `json:"at_once,omitempty"`
	// Queue is how many more wait; further ones are `busy`, with `outcome ask` in doubt and asked about later. Default: four
	// times `at_once`; with `outcome ask` 1,024.
	Queue int `json:"queue,omitempty"`
	// Wait is how long they wait, up to 1m; then they are `busy`. Default: 1s; with `outcome ask` 5s.
	Wait caddy.Duration `json:"wait,omitempty"`
	// Timeout is how long the shop may take, up to 1m; then the attempt is `unavailable`. Default: 2s.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

const (
	defaultAtOnce  = 16
	defaultWait    = time.Second
	defaultTimeout = 2 * time.Second
	maxTimeout     = time.Minute
	// maxHeader bounds the header of an answer in bytes.
	maxHeader = 64 << 10
)

// Inquiry is a compiled Spec.
type Inquiry struct {
	method        string
	url           *shopurl.URL
	body          *shopurl.Body
	wait, timeout time.Duration
	slots         chan struct{}
	waiting       atomic.Int64
	queue         int64
	client        *http.Client
	// MaxAnswer is how many bytes of an answer are read. Default: outcome.DefaultMaxBody.
	MaxAnswer int
}

// Compile checks a Spec. what names it in errors, as in "the lookup". prefixes are of the
// placeholders that it may have besides {ref}, such as "jwt.".
func (s *Spec) Compile(what string, prefixes ...string) (*Inquiry, error) {
	there := "{ref}"
	for _, prefix := range prefixes {
		there += ", {" + prefix + "…}"
	}
	has := func(name string) bool {
		return name == "ref" || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) && len(name) > len(p) })
	}
	i := &Inquiry{
		method: s.Method, wait: cmp.Or(time.Duration(s.Wait), defaultWait), timeout: cmp.Or(time.Duration(s.Timeout), defaultTimeout),
	}
	atOnce := cmp.Or(s.AtOnce, defaultAtOnce)
	i.queue = int64(cmp.Or(s.Queue, 4*atOnce))
	var err error
	switch {
	case s.Method != http.MethodGet && s.Method != http.MethodPost:
		return nil, fmt.Errorf("%s: the method %q: there are GET and POST", what, s.Method)
	case s.Method == http.MethodGet && s.Body != "":
		return nil, fmt.Errorf("%s: a GET has no body: write POST", what)
	case atOnce < 0 || i.queue < 0:
		return nil, fmt.Errorf("%s: at_once and queue must be positive", what)
	case i.wait < 0 || i.wait > maxTimeout || i.timeout < 0 || i.timeout > maxTimeout:
		return nil, fmt.Errorf("%s: wait and timeout are at most %v", what, maxTimeout)
	}
	if i.url, err = shopurl.Compile(what, s.URL, has, there); err != nil {
		return nil, err
	}
	if i.body, err = shopurl.CompileBody(what, s.Body, has); err != nil {
		return nil, err
	}
	i.slots = make(chan struct{}, atOnce)
	i.client = shopurl.NewClient(atOnce, maxHeader)
	i.MaxAnswer = outcome.DefaultMaxBody
	return i, nil
}

// ByRef reports whether the question names the order by its ref.
func (i *Inquiry) ByRef() bool { return slices.Contains(i.Names(), "ref") }

// Names returns the placeholders of the question, some more than once.
func (i *Inquiry) Names() []string {
	if i == nil {
		return nil
	}
	return slices.AppendSeq(slices.Collect(i.body.Names), i.url.Names)
}

// Host is the host that is asked.
func (i *Inquiry) Host() string { return i.url.Host }

// Close ends idle connections.
func (i *Inquiry) Close() {
	if i != nil {
		i.client.CloseIdleConnections()
	}
}

var (
	// ErrBusy: too many questions wait, or this one has waited for too long.
	ErrBusy = errors.New("too many questions to the shop are under way")
	// ErrNoValue: the order lacks a value of the question, such as its ref, or has one that
	// cannot stand in the URL.
	ErrNoValue = errors.New("the order lacks a value that the question needs")
)

// Ask asks the shop in a buyer's name. values has the placeholders of the question, and "ref" also
// where it has none: the answer may be compared with it. The answer is whole unless it is longer than
// MaxAnswer, also after its encoding is undone.
func (i *Inquiry) Ask(ctx context.Context, buyer *Buyer, values shopurl.Lookup) (*outcome.ShopAnswer, error) {
	at, ok := i.url.Fill(values)
	content, filled := i.body.Fill(values)
	if !ok || !filled {
		return nil, ErrNoValue
	}
	if err := i.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-i.slots }()
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, i.method, addQuery(at, buyer.query), bytes.NewReader(content))
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header = buyer.header.Clone()
	shopurl.Repeatable(request)
	if len(content) > 0 {
		request.Header["Content-Type"] = []string{"application/json"}
	}
	if request.URL.Scheme == "http" {
		request.Host = buyer.host // as reverse_proxy does
	}
	response, err := i.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(i.MaxAnswer)+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	return plain(&outcome.ShopAnswer{Status: response.StatusCode, Header: response.Header, Body: answer, Whole: len(answer) <= i.MaxAnswer, MaxBody: i.MaxAnswer, Ref: values("ref")}), nil
}

// plain undoes the encoding of an answer, where it can.
func plain(a *outcome.ShopAnswer) *outcome.ShopAnswer {
	body, problem := a.Plain()
	switch problem {
	case "":
		a.Body = body
		a.Header.Del("Content-Encoding")
	case outcome.CauseTooLong:
		a.Whole = false
	}
	return a
}

// enter waits for a slot.
func (i *Inquiry) enter(ctx context.Context) error {
	select {
	case i.slots <- struct{}{}:
		return nil
	default:
	}
	defer i.waiting.Add(-1)
	if i.waiting.Add(1) > i.queue {
		return ErrBusy
	}
	timer := time.NewTimer(i.wait)
	defer timer.Stop()
	select {
	case i.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withoutURL removes the URL from an error, because it may contain a ref or a secret.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// HasCredential reports whether a request has a credential by which a shop knows its session: an
// Authorization header or a cookie.
func HasCredential(r *http.Request) bool {
	return strings.Join(r.Header["Authorization"], "")+strings.Join(r.Header["Cookie"], "") != ""
}
