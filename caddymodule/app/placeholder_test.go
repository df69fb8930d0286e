package app_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A placeholder that Caddy does not know is never a secret, which anyone could guess, nor an address.
func TestUnknownPlaceholderIsNoSecret(t *testing.T) {
	const misspelt = "{file:/etc/stockgate/a-file-with-the.secret}" // long enough for a key
	s := sitetest.Open(t, nil)
	redis := func(option string, value any) map[string]any {
		return map[string]any{"redis": map[string]any{"addresses": []string{"127.0.0.1:1"}, option: value}}
	}
	for want, app := range map[string]map[string]any{
		"key hmac: its material has a placeholder":    {"token": map[string]any{"keys": []any{map[string]any{"kind": "hmac", "material": misspelt}}}},
		"key ed25519: its material has a placeholder": {"token": map[string]any{"keys": []any{map[string]any{"kind": "ed25519", "material": misspelt + "\n"}}}},
		"redis: address has a placeholder":            redis("addresses", []string{"{REDIS_URL}"}),
		"address has a placeholder":                   redis("addresses", []string{"redis://:{secret.redis}@redis:6379"}),
		"redis: username has a placeholder":           redis("username", "{REDIS_USER}"),
		"redis: password has a placeholder":           redis("password", "{REDIS_PASSWORD}"),
	} {
		want += " that is not known here; use {env.NAME} or {file./path}"
		if err := s.TryLoad(app); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
