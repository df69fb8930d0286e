package doctor_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// What an edge says of its Redis names the server, and never repeats the password of its URL.
func TestDoctorKeepsThePassword(t *testing.T) {
	const password = "S3CRET"
	server := redistest.Start(t, redistest.Password(password))
	host, port, _ := strings.Cut(server.Addr(), ":")
	redistest.Start(t, redistest.Password(password), redistest.Config("replicaof "+host+" "+port, "masterauth "+password))
	s := sitetest.Open(t, map[string]any{"redis": map[string]any{"addresses": []string{"redis://:" + password + "@" + server.Addr() + "/0"}}})
	doctor := func(wants ...string) (body string) {
		t.Helper()
		s.Eventually(strings.Join(wants, ", "), func() (string, bool) {
			body = s.Admin("GET", "/stockgate/doctor", "").Body
			missing := slices.DeleteFunc(slices.Clone(wants), func(want string) bool { return strings.Contains(body, want) })
			return body, len(missing) == 0
		})
		return body
	}
	var checks []string
	for _, check := range []string{"promotion", "min_replicas", "wait", "repl_timeout", "fork", "latency"} {
		checks = append(checks, `"check":"`+check+`"`)
	}
	found := doctor(append(checks, `"`+server.Addr()+" takes writes when it is cut off")...) // some take a round of their own
	server.Stop()
	sitetest.Silence(t)
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
