// Package reply passes a refusal to Caddy: as an answer, as placeholders, or as an error
// for handle_errors.
package reply

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Refuse answers a request with a refusal, and sets its placeholders. If the style asks for
// it, Refuse returns an error for handle_errors.
func Refuse(f *refuse.Refuser, w http.ResponseWriter, r *http.Request, no *sale.Refusal) error {
	a := f.For(no.Reason)
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		Publish(r, repl, Placeholders{Verdict: "refused", refusal: a, asked: r.Header})
	}
	if f.Write(a, w, r, no) {
		return nil
	}
	DropPayload(r)
	return caddyhttp.Error(a.Status, fmt.Errorf("stockgate refused the attempt: %s", a.Kind.Reason))
}

// DropQuery removes a request's query, also from its original URL, which FastCGI passes on.
func DropQuery(r *http.Request) {
	r.URL.RawQuery, r.URL.ForceQuery = "", false
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && orig.URL != nil {
		orig.URL.RawQuery, orig.URL.ForceQuery = "", false
	}
}

// DropPayload turns a request into a GET without body and query before Caddy's error routes
// see it: they may proxy, and no order may reach the shop past the gate.
func DropPayload(r *http.Request) {
	DropQuery(r)
	// Caddy gives the request its original method and URL back for error routes.
	if orig, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		orig.Method = http.MethodGet
		*r = *r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, orig))
	}
	r.Method = http.MethodGet
	if r.Body != nil {
		_ = r.Body.Close() // a handler around this one may have a copy of the request
	}
	r.Body = http.NoBody
	r.GetBody = nil
	r.ContentLength = 0
	r.TransferEncoding = nil
	r.Trailer = nil
	attempt.StripMethodOverride(r.Header)
	for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Trailer"} {
		r.Header.Del(name)
	}
}

// DropAsIn drops the payload of a request if a handler has dropped it in the copy that was handed on: error routes get
// the request.
func DropAsIn(handed, r *http.Request) {
	if handed.Method == http.MethodGet && handed.Body == http.NoBody && (r.Method != http.MethodGet || r.Body != http.NoBody) {
		DropPayload(r)
	}
}
