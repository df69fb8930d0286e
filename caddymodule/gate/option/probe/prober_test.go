package probe

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// While Redis does not answer, the shop is not asked by a ref, and the log does not say that
// the shop gives no answer.
func TestProbeWithoutRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := redistest.Start(t)
	store := openSale(t, ctx, server.Addr())
	reserve(t, ctx, store, "r1", "Ann")
	server.Stop()
	p := compileProbe(t, &InDoubt{Probe: "http://127.0.0.1:1/orders/{ref}"}, nil)
	core, logs := observer.New(zap.DebugLevel)
	p.log = zap.New(core)
	pr := &prober{Probe: p, runtime: &edgeruntime.Runtime{Edge: edge.New(store, edge.Options{})}}
	pr.resolve(ctx, "s", reservation.ProbeDue{ID: "r1", Ref: "order-1"})
	if logs.FilterMessageSnippet("probe gets no answer").Len() != 0 || logs.FilterMessageSnippet("redis did not say which reservations have the ref").Len() != 1 || pr.deaf.Load() {
		t.Errorf("the log says %+v", logs.All())
	}
}
