package sitetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// BeCaddyEnv is set in a process in which the test binary is the caddy command.
const BeCaddyEnv = "STOCKGATE_TEST_BE_CADDY"

// BeCaddy runs the caddy command and exits where BeCaddyEnv is set. A package whose tests
// run commands calls it in an init function. In the test's own process, where Run runs most commands,
// it fixes the time zone, UTC, and the operator, ann.
func BeCaddy() {
	if os.Getenv(BeCaddyEnv) != "" {
		caddycmd.Main()
		os.Exit(0)
	}
	time.Local = time.UTC
	os.Setenv("SUDO_USER", "ann")
}

// Ran is the result of a command.
type Ran struct {
	Status      int
	Out, Errors string
}

// Run runs caddy stockgate with these arguments: in this process, but for demo and learn, which run a Caddy
// of their own. There is one Caddy in a process.
func Run(t *testing.T, stdin string, args ...string) Ran {
	t.Helper()
	if slices.Contains(args, "demo") || slices.Contains(args, "learn") {
		return Process(t, stdin, args...)
	}
	return Here(t, stdin, args...)
}

// Here runs caddy stockgate in this process. Where the command is learn, the test has no site.
func Here(t *testing.T, stdin string, args ...string) Ran {
	t.Helper()
	root := &cobra.Command{Use: "caddy", SilenceUsage: true}
	root.SetVersionTemplate("{{.Version}}\n")
	registered := caddycmd.Commands()["stockgate"]
	cmd := &cobra.Command{Use: registered.Name + " " + registered.Usage, Short: registered.Short, Long: registered.Long}
	registered.CobraFunc(cmd)
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"stockgate"}, args...))
	var out, errs bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	err := root.ExecuteContext(t.Context())
	return Ran{statusOf(err), out.String(), errs.String()}
}

// statusOf returns the exit status that Caddy's main function takes from the error of a command.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	status := 1 // Caddy does not export the type of the errors that have another one
	fmt.Sscanf(err.Error(), "exiting with status %d", &status)
	return status
}

// Process runs caddy stockgate in a process of its own: a test gets the same output and exit status
// as a shell.
func Process(t *testing.T, stdin string, args ...string) Ran {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"stockgate"}, args...)...)
	cmd.Env = append(os.Environ(), BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "TZ=UTC", "HOME="+t.TempDir())
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
	s.T.Helper()
	return Run(s.T, "", append([]string{"--address", s.AdminAddress()}, args...)...)
}

// OK runs a command that must succeed without output on stderr.
func (s *Site) OK(args ...string) string {
	s.T.Helper()
	r := s.Run(args...)
	if r.Status != 0 || r.Errors != "" {
		s.T.Fatalf("%q: %d\n%s%s", args, r.Status, r.Out, r.Errors)
	}
	return r.Out
}

// File writes a file of the site, and returns its path.
func (s *Site) File(name, content string) string {
	s.T.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return path
}

// Read is a file of the site.
func (s *Site) Read(name string) string {
	s.T.Helper()
	raw, err := os.ReadFile(s.Path(name))
	if err != nil {
		s.T.Fatal(err)
	}
	return string(raw)
}
