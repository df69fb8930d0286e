package resolve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

// forward sends the webhook to the shop. The provider gets a success only when the shop has
// answered 2xx and Redis knows what follows from it.
func (s *settling) forward(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Duration(s.of.ForwardTimeout))
	defer cancel()
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	forward.Forget(repl)
	a := &settlingAnswer{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, settling: s, repl: repl, before: w.Header().Clone()}
	err := next.ServeHTTP(a, r.WithContext(ctx))
	switch {
	case a.own: // the provider has this handler's answer
		return nil
	case a.status != 0:
		return err
	case err == nil:
		if status, proxied := forward.ProxyStatus(repl); proxied && status >= 200 {
			a.WriteHeader(status) // the handlers behind this one have the shop's answer and wrote nothing
			return nil
		}
		s.of.log.Error("nothing behind stockgate_resolve answered a webhook: is there a reverse_proxy for it?", s.fields()...)
	default:
		s.of.log.Warn("the shop did not take a payment's webhook: the provider delivers it again", append(s.fields(), zap.Error(err))...)
	}
	a.refuse(unavailable(meter.WebhookShopFailed, "the shop did not answer: deliver it again"))
	return nil
}

// settlingAnswer stands between the shop and the provider. It settles before a success goes out.
type settlingAnswer struct {
	*caddyhttp.ResponseWriterWrapper
	settling *settling
	repl     *caddy.Replacer
	before   http.Header // as it was when the webhook was forwarded

	status int  // as written by the handlers behind; 0: nothing yet
	own    bool // this handler answered instead
}

// WriteHeader takes the shop's status, which decides.
func (a *settlingAnswer) WriteHeader(status int) {
	if status < 200 || a.status != 0 { // an interim answer says nothing
		return
	}
	a.status = status
	shops, proxied := forward.ProxyStatus(a.repl)
	if !proxied {
		shops = status
	}
	switch {
	case shops/100 == 2 && status/100 == 2:
		if no := a.settling.settle(); no != nil {
			a.refuse(no)
			return
		}
	case status/100 == 2: // another handler made a success of it
		a.refuse(unavailable(meter.WebhookShopFailed, fmt.Sprintf("the shop answered %d: deliver it again", shops)))
		return
	default:
		meter.CountWebhook(meter.WebhookShopFailed)
		a.settling.of.log.Warn("the shop did not take a payment's webhook: the provider delivers it again",
			append(a.settling.fields(), zap.Int("status", shops))...)
	}
	a.ResponseWriter.WriteHeader(status)
}

// refuse answers in the shop's place.
func (a *settlingAnswer) refuse(no *refusal) {
	a.own = true
	h := a.Header()
	clear(h)
	maps.Copy(h, a.before)
	_ = no.answer(a.ResponseWriter)
}

// Write drops what the shop says where this handler has answered.
func (a *settlingAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if a.own {
		return len(p), nil
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom copies through Write.
func (a *settlingAnswer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{a}, r)
}

// FlushError flushes what may reach the provider.
func (a *settlingAnswer) FlushError() error {
	if a.status == 0 || a.own {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush is FlushError without the error.
func (a *settlingAnswer) Flush() { _ = a.FlushError() }

// Hijack is refused: a webhook is no tunnel.
func (a *settlingAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errors.ErrUnsupported
}

// Interface guards
var (
	_ http.ResponseWriter = (*settlingAnswer)(nil)
	_ io.ReaderFrom       = (*settlingAnswer)(nil)
	_ http.Flusher        = (*settlingAnswer)(nil)
	_ http.Hijacker       = (*settlingAnswer)(nil)
)
