package app_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// countedPart counts the calls to Start and Stop.
type countedPart struct{ started, stopped int }

func (p *countedPart) Start(*edgeruntime.Runtime) { p.started++ }
func (p *countedPart) Stop()                      { p.stopped++ }

// gotParts has the parts that the app gave to testParts, each twice; madeParts has the parts that were made.
var gotParts, madeParts []*countedPart

// testParts asks the app for two parts.
type testParts struct{}

func (testParts) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_parts", New: func() caddy.Module { return new(testParts) }}
}

func (testParts) Provision(ctx caddy.Context) error {
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return err
	}
	type one struct{}
	type other struct{}
	part := func(key any) *countedPart {
		return loaded.(*app.App).Part(key, func() app.Part {
			made := new(countedPart)
			madeParts = append(madeParts, made)
			return made
		}).(*countedPart)
	}
	gotParts = []*countedPart{part(one{}), part(other{}), part(one{}), part(other{})}
	return nil
}

func (testParts) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

func init() { caddy.RegisterModule(testParts{}) }

// A part is made once for its key, starts when its configuration does, and stops with it.
func TestPartsAreMadeOnce(t *testing.T) {
	gotParts, madeParts = nil, nil
	_, options := sitetest.Redis(t)
	s := sitetest.Open(t, options)
	s.Gates = []any{map[string]any{"handler": "test_parts"}}
	s.Load(options)
	if len(madeParts) != 2 || !slices.Equal(gotParts, append(madeParts, madeParts...)) {
		t.Fatalf("%d parts were made", len(madeParts))
	}
	for _, p := range madeParts {
		if *p != (countedPart{1, 0}) {
			t.Errorf("once it has started: %+v", p)
		}
	}
	s.Gates = nil
	s.Load(options)
	for _, p := range madeParts {
		if *p != (countedPart{1, 2}) { // when the configuration stops, and when it is cleaned up
			t.Errorf("once it has stopped: %+v", p)
		}
	}
}
