//go:build !race

package guard_test

import (
	"strings"
	"testing"
)

// A query that overrides no method and names no route costs nothing.
func TestPlainQueriesDoNotAllocate(t *testing.T) {
	s := routesOf(t, nil)
	for _, query := range []string{"", "a=b&c=d", "a=%2F&c+d=e;f"} {
		r := posted(query)
		s.Refuses(r)
		most := float64(strings.Count(query, "%") + 2*strings.Count(query, "+")) // decoded ones are copied
		if n := testing.AllocsPerRun(100, func() { s.Refuses(r) }); n > most {
			t.Errorf("?%s: %v allocations, more than %v", query, n, most)
		}
	}
}
