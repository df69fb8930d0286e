package gate

import (
	"strings"
	"testing"
)

func TestRefSharedNeedsARef(t *testing.T) {
	if _, err := bound(&Gate{RefShared: true}).newReader(nil); err == nil || !strings.Contains(err.Error(), "ref_shared is given, and no ref") {
		t.Errorf("error %v", err)
	}
}

// bound is a gate whose judge has its options.
func bound(g *Gate) *Gate {
	g.bind()
	return g
}
