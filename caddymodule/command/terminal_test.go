package command_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

const escape = "\x1b["

// onTerminal runs caddy with these arguments on a terminal, which `script` makes.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "script", "-qec", self+" "+strings.Join(args, " "), "/dev/null")
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "TERM=xterm", "NO_COLOR=", "HOME="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// answerOnTerminal runs a command on a terminal, on which a line is typed.
func answerOnTerminal(t *testing.T, s *sitetest.Site, line string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{self, "stockgate", "--address", s.AdminAddress()}, args...)
	cmd := exec.CommandContext(t.Context(), "script", "-qec", strings.Join(args, " "), "/dev/null")
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "TERM=xterm", "HOME="+t.TempDir())
	cmd.Stdin = strings.NewReader(line + "\n")
	out, _ := cmd.CombinedOutput() // it fails where the command does
	return string(out)
}

// On a terminal, commands paint what matters and say what they wait for; with NO_COLOR they
// only say it. In a pipe there is neither, and the text is the same.
func TestColourAndProgress(t *testing.T) {
	_, app := durable(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	for _, c := range []struct {
		args    []string
		painted string // on a terminal
		waits   string // the line of progress
		pipe    string
	}{
		{[]string{"sale", "show", "double11"}, "\x1b[1mdouble11\x1b[0m is \x1b[32mopen\x1b[0m", "", "double11 is open"},
		{[]string{"doctor"}, "\x1b[32mok     \x1b[0m", "asking Redis, the ledger and the gates", "ok       caddy"},
		{[]string{"reconcile", "double11"}, "\x1b[32mall agrees\x1b[0m", "comparing double11 with its own records", "all agrees"},
	} {
		args := append([]string{"stockgate", "--address", s.AdminAddress()}, c.args...)
		if out := onTerminal(t, nil, args...); !strings.Contains(out, c.painted) || !strings.Contains(out, c.waits) {
			t.Errorf("%q on a terminal: %q", c.args, out)
		}
		plain := onTerminal(t, []string{"NO_COLOR=1"}, args...)
		if !strings.Contains(plain, c.waits) || strings.Contains(plain, escape+"3") || strings.Contains(plain, escape+"1m") || strings.Contains(plain, escape+"2m") {
			t.Errorf("%q with NO_COLOR: %q", c.args, plain)
		}
		if out := onTerminal(t, []string{"TERM=dumb"}, args...); strings.Contains(out, escape) {
			t.Errorf("%q on a dumb terminal: %q", c.args, out)
		}
		r := s.Run(c.args...)
		if r.Errors != "" || strings.Contains(r.Out, escape) || strings.Contains(r.Out, "\r") || !strings.Contains(r.Out, c.pipe) {
			t.Errorf("%q in a pipe: %q %q", c.args, r.Out, r.Errors)
		}
	}
}

// On a terminal, a command that cannot be undone asks first, and any answer but the sale's id changes nothing.
func TestTerminalAsks(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	typed := func(answer string, args ...string) string {
		t.Helper()
		return answerOnTerminal(t, s, answer, args...)
	}
	status := func() string {
		return sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "").Status
	}
	s.OK("queue", "pause", "double11")
	sitetest.NewShopper(t, server).Order("r1", sitetest.Queue(1))
	if out := typed("no", "queue", "drain", "double11"); !strings.Contains(out, "1 order waits") || !strings.Contains(out, "Type double11 to go on") || !strings.Contains(out, "nothing was changed") {
		t.Fatal(out)
	}
	if out := typed("double11", "queue", "drain", "double11"); !strings.Contains(out, "1 order of double11 released") {
		t.Fatal(out)
	}
	if out := typed("no", "sale", "close", "double11"); !strings.Contains(out, "Type double11 to go on") || !strings.Contains(out, "nothing was changed") || status() != "open" {
		t.Fatalf("%s\n%s", status(), out)
	}
	if out := typed("double11", "sale", "close", "double11"); !strings.Contains(out, "double11 is closed") || status() != "closed" {
		t.Fatalf("%s\n%s", status(), out)
	}
	if out := typed("no", "sale", "delete", "double11"); !strings.Contains(out, "nothing was changed") || status() != "closed" {
		t.Fatalf("%s\n%s", status(), out)
	}
	if out := typed("", "sale", "delete", "double11", "--yes"); !strings.Contains(out, "double11 is deleted") {
		t.Fatal(out)
	}
}

// The version is Stockgate's and Caddy's.
func TestVersion(t *testing.T) {
	r := sitetest.Run(t, "", "--version")
	if r.Status != 0 || !strings.HasPrefix(r.Out, "stockgate/") || strings.Count(strings.TrimSpace(r.Out), "\n") != 0 {
		t.Errorf("%+v", r)
	}
}
