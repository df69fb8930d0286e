package caddymodule

import (
	"testing"

	"github.com/stockgate/stockgate/fastpath"
)

// FastJudge is the one of the running configuration's only server with the wrapper.
func FastJudge() fastpath.Judge {
	for _, l := range latest().listeners() {
		if l := l.(*Listener); l.plan != nil {
			return l.plan
		}
	}
	return nil
}

// FastAddresses are where the servers with the wrapper listen.
func FastAddresses() (all []string) {
	for s := range latest().listeners() {
		for _, ln := range s.Listeners() {
			all = append(all, ln.Addr().String())
		}
	}
	return all
}

// NoJitter makes Retry-After predictable for a test.
func NoJitter(t *testing.T) {
	before := jitter
	jitter = func(int64) int64 { return 0 }
	t.Cleanup(func() { jitter = before })
}
