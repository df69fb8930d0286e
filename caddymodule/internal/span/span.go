// Package span makes the spans of an attempt where Caddy's directive tracing records the
// request. Without it they cost a look into the request's context.
package span

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// name is that of the library that makes the spans (OpenTelemetry's instrumentation scope).
const name = "github.com/stockgate/stockgate"

// The names of the spans, in the order of an attempt's way.
const (
	Read    = "stockgate.read"    // the body, and the attempt in it
	Filter  = "stockgate.filter"  // lists, rates, challenge, earlier orders, the sale, memory
	Reserve = "stockgate.reserve" // Redis holds the stock
	Forward = "stockgate.forward" // the shop answers
	Resolve = "stockgate.resolve" // Redis learns what the answer means
)

// Start begins a span within that of ctx. It returns ctx itself, and a span that does nothing,
// unless that is recorded.
func Start(ctx context.Context, of string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop
	}
	return parent.TracerProvider().Tracer(name).Start(ctx, of)
}

// noop is made once, so that a request without tracing allocates nothing.
var noop = trace.SpanFromContext(context.Background())
