package caddymodule_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/redistest"
)

// What an edge says of its Redis names the server, and never repeats the password of its URL.
func TestDoctorKeepsThePassword(t *testing.T) {
	const password = "S3CRET"
	server := redistest.Start(t, redistest.Password(password), redistest.Config("repl-diskless-sync-delay 0"))
	host, port, _ := strings.Cut(server.Addr(), ":")
	redistest.Start(t, redistest.Password(password), redistest.Config("replicaof "+host+" "+port, "masterauth "+password, "repl-diskless-sync-delay 0"))
	s := openSite(t, map[string]any{"redis": map[string]any{"addresses": []string{"redis://:" + password + "@" + server.Addr() + "/0"}}})
	doctor := func(want string) (body string) {
		t.Helper()
		s.Eventually(want, func() (string, bool) {
			body = s.Admin("GET", "/stockgate/doctor", "").Body
			return body, strings.Contains(body, want)
		})
		return body
	}
	found := doctor("takes writes when it is cut off")
	if !strings.Contains(found, `"`+server.Addr()+" takes writes") {
		t.Errorf("it does not name the server: %s", found)
	}
	for _, check := range []string{"promotion", "min_replicas", "wait", "repl_timeout", "fork", "latency"} {
		if !strings.Contains(found, `"check":"`+check+`"`) {
			t.Errorf("it says nothing of %s: %s", check, found)
		}
	}
	server.Stop()
	found += doctor("this edge does not sell")
	log, err := os.ReadFile(s.Path("log"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"doctor": found, "health": s.Admin("GET", "/stockgate/health", "").Body, "log": string(log)} {
		if text == "" || strings.Contains(text, password) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
