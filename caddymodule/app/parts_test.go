package app

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// countedPart counts the calls to Start and Stop.
type countedPart struct{ started, stopped int }

func (p *countedPart) Start(*edgeruntime.Runtime) { p.started++ }
func (p *countedPart) Stop()                      { p.stopped++ }

// A part is made once for its key, and gets each start and stop.
func TestPartsAreMadeOnce(t *testing.T) {
	type one struct{}
	type other struct{}
	a, made := new(App), 0
	part := func(key any) *countedPart {
		return a.Part(key, func() Part { made++; return new(countedPart) }).(*countedPart)
	}
	first, second := part(one{}), part(other{})
	if part(one{}) != first || part(other{}) != second || first == second || made != 2 {
		t.Fatalf("%d parts were made", made)
	}
	a.parts.start(nil)
	a.parts.stop()
	for _, p := range []*countedPart{first, second} {
		if *p != (countedPart{1, 1}) {
			t.Errorf("%+v", p)
		}
	}
}
