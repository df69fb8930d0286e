package sitetest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// BeCaddyEnv is set in a process in which the test binary is the caddy command: a test
// gets the same output and exit status as a shell.
const BeCaddyEnv = "STOCKGATE_TEST_BE_CADDY"

// BeCaddy runs the caddy command and exits where BeCaddyEnv is set. A package whose tests
// run commands calls it in an init function.
func BeCaddy() {
	if os.Getenv(BeCaddyEnv) != "" {
		caddycmd.Main()
		os.Exit(0)
	}
}

// Ran is the result of a command.
type Ran struct {
	Status      int
	Out, Errors string
}

// Run runs caddy stockgate with these arguments.
func Run(t *testing.T, stdin string, args ...string) Ran {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"stockgate"}, args...)...)
	cmd.Env = append(os.Environ(), BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "SUDO_USER=ann", "TZ=UTC", "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Run runs a command against the site's Caddy.
func (s *Site) Run(args ...string) Ran {
	s.t.Helper()
	return Run(s.t, "", append([]string{"--address", s.AdminAddress()}, args...)...)
}

// OK runs a command that must succeed without output on stderr.
func (s *Site) OK(args ...string) string {
	s.t.Helper()
	r := s.Run(args...)
	if r.Status != 0 || r.Errors != "" {
		s.t.Fatalf("%q: %d\n%s%s", args, r.Status, r.Out, r.Errors)
	}
	return r.Out
}

// File writes a file of the site, and returns its path.
func (s *Site) File(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Read is a file of the site.
func (s *Site) Read(name string) string {
	s.t.Helper()
	raw, err := os.ReadFile(s.Path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}
