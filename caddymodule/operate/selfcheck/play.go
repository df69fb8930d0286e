package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/stockgate/stockgate/internal/learn"
)

// play sends the recorded requests, and then the order that was taken.
func (c *check) play(ctx context.Context) error {
	for _, x := range c.learned.Others {
		if err := c.other(ctx, x); err != nil {
			return err
		}
	}
	return c.order(ctx)
}

// refused sends an order that the shop refuses.
func (c *check) refused(ctx context.Context, x *learn.Exchange) error {
	if _, err := c.send(ctx, x); err != nil {
		return err
	}
	return c.nothingTaken(ctx, x)
}

// problem notes that a request did not go as it was recorded.
func (c *check) problem(x *learn.Exchange, format string, args ...any) {
	c.out.Problems = append(c.out.Problems, x.Name()+": "+fmt.Sprintf(format, args...))
}

// tokenHeader carries the reservation to the shop.
const tokenHeader = "Stockgate-Token"

// other sends a request that is no order: it must come to the shop as it is.
func (c *check) other(ctx context.Context, x *learn.Exchange) error {
	if c.learned.IsWebhook(x) {
		return nil // its signature was made with another secret
	}
	a, err := c.send(ctx, x)
	if err != nil {
		return err
	}
	got := c.shop.received()
	switch {
	case got == nil && strings.Contains(a.body, "PersistedQueryNotFound"): // its client sends the document then
	case got == nil && a.refusal != "":
		c.problem(x, "it is no order, and the edge refuses it as %s: %s", a.refusal, a.detail())
		return nil
	case got == nil && a.status == http.StatusNotFound && c.learned.Known() != "":
		c.out.Closed = append(c.out.Closed, x)
		return nil
	case got == nil:
		c.problem(x, "it does not reach the shop as it was recorded; the edge answers %d", a.status)
		return nil
	case got.Get(tokenHeader) != "":
		c.problem(x, "it is no order, and the gate takes it for one")
		return nil
	}
	c.out.Passed++
	c.compareHeader(x, got)
	return nil
}

// compareHeader notes which fields do not reach the shop.
func (c *check) compareHeader(x *learn.Exchange, got http.Header) {
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		known := slices.ContainsFunc(c.out.Removed, func(r RemovedField) bool { return r.Field == name })
		if got != nil && got[name] == nil && !ofConnection[name] && canBeSent(name, x.Header[name]) && !known {
			c.out.Removed = append(c.out.Removed, RemovedField{x, name})
		}
	}
}

// order sends the order that was taken: the gate must reserve its lines, and read the shop's answer as it was
// meant.
func (c *check) order(ctx context.Context) error {
	x := c.learned.Order
	a, err := c.send(ctx, x)
	if err != nil {
		return err
	}
	got := c.shop.received()
	switch {
	case got == nil && a.refusal != "":
		c.problem(x, "the gate refuses the order as %s: %s", a.refusal, a.detail())
		return nil
	case got == nil:
		c.problem(x, "the order does not reach the shop as it was recorded; the edge answers %d", a.status)
		return nil
	case got.Get(tokenHeader) == "":
		c.problem(x, "the order passes without a reservation")
		return nil
	}
	if reserved := linesOf(got.Get(tokenHeader)); !sameUnits(reserved, c.learned) {
		c.problem(x, "the gate reserves other units than the recording ordered")
	}
	return c.settled(ctx, x)
}

// answered is what the edge answered.
type answered struct {
	status  int
	refusal string
	body    string
}

// detail says why a request was refused, in the edge's own words.
func (a *answered) detail() string {
	if start := strings.Index(a.body, `"detail":"`); start >= 0 {
		text, _, _ := strings.Cut(a.body[start+len(`"detail":"`):], `"`)
		return text
	}
	return fmt.Sprint(a.status)
}

// sent is a request as it goes to the edge.
type sent struct{ method, uri, body string }

// send sends a recorded request to the gate, with a token of the check in the place of the shop's.
func (c *check) send(ctx context.Context, x *learn.Exchange) (*answered, error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, x.Method, "http://recorded"+x.URL.RequestURI(), strings.NewReader(string(x.Body)))
	if err != nil {
		c.problem(x, "it is no request that can be sent again")
		return &answered{}, nil
	}
	r.Host = x.URL.Host
	for name, values := range x.Header {
		if !ofConnection[name] && canBeSent(name, values) {
			r.Header[name] = values
		}
	}
	signAgain(r.Header)
	c.shop.play(x, &sent{x.Method, r.URL.RequestURI(), string(x.Body)})
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.socket())
		}},
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, errors.New(x.Name() + " could not be played: the edge does not answer it")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, errors.New(x.Name() + " could not be played: the edge does not answer it")
	}
	return &answered{resp.StatusCode, resp.Header.Get("Stockgate-Refusal"), string(body)}, nil
}

// canBeSent reports whether net/http sends a field: recordings may have anything.
func canBeSent(name string, values []string) bool {
	return httpguts.ValidHeaderFieldName(name) && !slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) })
}

// ofConnection are fields that the recorded connection had, and those that net/http writes itself.
var ofConnection = map[string]bool{"Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Host": true, "Keep-Alive": true, "Upgrade": true, "Te": true, "Accept-Encoding": true, "Expect": true}
