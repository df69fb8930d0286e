package dashboard

import (
	"sync"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// collectors are shared by all dashboards of an edge runtime, and by its configurations: what
// the page has collected survives a reload.
var collectors = caddy.NewUsagePool()

// part gives the dashboards of one configuration their collector.
type part struct {
	mu      sync.Mutex
	runtime *edgeruntime.Runtime // nil: not started, or stopped
	shared  *collector
}

type partKey struct{}

func partOf(a *app.App) *part {
	return a.Part(partKey{}, func() app.Part { return new(part) }).(*part)
}

// Start takes the collector from the pool, or starts it.
func (p *part) Start(d *edgeruntime.Runtime) {
	v, _, err := collectors.LoadOrNew(d, func() (caddy.Destructor, error) { return startCollector(d), nil })
	if err != nil { // it never is
		caddy.Log().Named("stockgate").Error("the dashboard collects nothing", zap.Error(err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtime, p.shared = d, v.(*collector)
}

// Stop gives the collector back.
func (p *part) Stop() {
	p.mu.Lock()
	d := p.runtime
	p.runtime = nil // requests in flight may go on reading it
	p.mu.Unlock()
	if d != nil {
		_, _ = collectors.Delete(d)
	}
}

// collector returns the collector; nil: the app has not started.
func (p *part) collector() *collector {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared
}
