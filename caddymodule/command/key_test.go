package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A file without a key is named, and a key is not set aside: either would lose the secret.
func TestKeyReplaceIsStrict(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, blank, pem := file("empty.pem", ""), file("blank.pem", " \n"), file("old.pem", "-----BEGIN PRIVATE KEY-----")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--old-key", empty}, empty + " is empty: it has no key"},
		{[]string{"--old-key", blank, "--force"}, blank + " is empty: it has no key"},
		{[]string{"--old-key", empty, "--begin-anew"}, empty + " is empty: it has no key"},
		{[]string{"--old-key", pem, "--begin-anew"}, "--old-key and --begin-anew exclude each other: a copy of the old key keeps all counts"},
	} {
		r := sitetest.Run(t, "", append([]string{"key", "replace", "--address", "localhost:1"}, c.args...)...)
		if r.Status != 2 || r.Out != "" || r.Errors != "caddy stockgate key replace: "+c.says+"\n" {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
}
