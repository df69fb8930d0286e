//go:build !race

package accesslist

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
)

// TestListsDoNotAllocate checks that deny, allow and other_items allocate nothing for an
// attempt.
func TestListsDoNotAllocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte("buyer:bob\nphone:1555\n192.0.2.0/24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lists Lists
	t.Cleanup(lists.Close)
	if err := lists.Open(map[string]Source{"some": {Source: FileSource, Path: path}}, sale.IdentityRules{}); err != nil {
		t.Fatal(err)
	}
	var ps DenyAllowLists
	if err := ps.Open(&lists, []string{"some"}, []string{"some"}); err != nil {
		t.Fatal(err)
	}
	log := zap.NewNop()
	r := httptest.NewRequest("POST", "/order", nil)
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.ClientIPVarKey: "198.51.100.1"}))
	for buyer, want := range map[string][2]*sale.Refusal{"ann": {nil, refuseNotEligible}, "bob": {refuseDenied, nil}} {
		a := &sale.Attempt{Buyer: buyer, Identities: map[string]string{"phone": "1666"}}
		if n := testing.AllocsPerRun(100_000, func() {
			if got := [2]*sale.Refusal{ps.Denied(r, a, log), ps.Eligible(r, a, nil, log)}; got != want {
				t.Errorf("%s: %v", buyer, got)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", buyer, n)
		}
	}
}
