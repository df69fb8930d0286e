package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule/command"
	"github.com/stockgate/stockgate/caddymodule/operate/demo"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// demoProcess makes a process of this test binary run a demo instead of the tests.
const demoProcess = "STOCKGATE_TEST_DEMO"

// TestDemoProcess is the process of the other tests: a demo takes the whole of
// Caddy, and there is one Caddy in a process.
func TestDemoProcess(t *testing.T) {
	switch args := os.Getenv(demoProcess); args {
	case "":
	case "past the gate":
		var server *httptest.Server
		err := demo.PastTheGate(t.Context(), os.Stdout, func(h http.Handler) string {
			server = httptest.NewServer(h)
			return server.URL
		})
		server.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	default:
		os.Args = append([]string{"caddy", "stockgate", "demo"}, strings.Fields(args)...)
		caddycmd.Main()
		os.Exit(0)
	}
}

// demoCommand is `caddy stockgate demo` with these arguments, in a home of its
// own and with a directory for temporary files.
func demoCommand(t *testing.T, args string) (cmd *exec.Cmd, home string) {
	t.Helper()
	home = t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoProcess$")
	cmd.Env = append(os.Environ(), demoProcess+"="+args, "HOME="+home, "TMPDIR="+filepath.Join(home, "tmp"),
		"XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
	return cmd, home
}

// runDemo runs it to its end.
func runDemo(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	cmd, home := demoCommand(t, args)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if left := filesIn(t, home); len(left) > 0 {
		t.Errorf("files were left behind: %q", left)
	}
	return status, out.String(), errs.String()
}

func filesIn(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && path != dir && path != filepath.Join(dir, "tmp") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// demoReport is what the demo says with --json.
type demoReport struct {
	Tally struct {
		Buyers, Accepted int
		Refused          map[string]int
		Waited           *stampede.Waited
	}
	Verdict struct {
		Ordered, Stock, Oversold int64
		Orders                   int
		Violations               []string
	}
}

func checkDemo(t *testing.T, args string) {
	t.Helper()
	status, out, errs := runDemo(t, args+" --once --json --buyers 150 --stock 20")
	var r demoReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || errs != "" {
		t.Fatalf("status %d, %v\n%s\n%s", status, err, out, errs)
	}
	v := r.Verdict
	if v.Ordered != 20 || v.Orders != 20 || v.Stock != 20 || v.Oversold != 0 || len(v.Violations) != 0 {
		t.Errorf("verdict: %+v", v)
	}
	// a buyer who tries again is refused for their limit, or because nothing is left
	if no := r.Tally.Refused; r.Tally.Buyers != 150 || r.Tally.Accepted != 20 || no["sold_out"] < 125 || no["sold_out"]+no["limit_reached"] < 132 {
		t.Errorf("tally: %+v", r.Tally)
	}
}

func TestDemoOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	checkDemo(t, "")
}

// TestDemoOnRedis checks that the demo removes its own keys, and no others.
func TestDemoOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	if err := client.SAdd(t.Context(), "stockgate:sales", "double11").Err(); err != nil {
		t.Fatal(err)
	}
	checkDemo(t, "--redis "+server.Addr())
	checkDemo(t, "--redis redis://"+server.Addr()+"/0")
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || keys[0] != "stockgate:sales" {
		t.Errorf("keys afterwards: %q, %v", keys, err)
	}
}

// TestDemoWithAWaitingList lets buyers wait: what others do not pay goes round until all units are sold, in order.
func TestDemoWithAWaitingList(t *testing.T) {
	t.Parallel()
	status, out, errs := runDemo(t, "--waitlist --once --json --buyers 200 --stock 20")
	var r demoReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || errs != "" {
		t.Fatalf("status %d, %v\n%s\n%s", status, err, out, errs)
	}
	if v := r.Verdict; v.Ordered != 20 || v.Orders != 20 || v.Oversold != 0 || len(v.Violations) != 0 {
		t.Errorf("verdict: %+v", v)
	}
	w := r.Tally.Waited
	if w == nil || w.Entered < 100 || w.Offered < 2 || w.Ordered < 1 || w.Offered < w.Ordered+w.Ended[stampede.Declined] || len(w.Refused) > 1 {
		t.Errorf("of those who waited: %+v", w)
	}
}

// TestDemoOutput checks what a new user sees first.
func TestDemoOutput(t *testing.T) {
	t.Parallel()
	status, out, errs := runDemo(t, "--once --buyers 30 --stock 5")
	if status != 0 || errs != "" {
		t.Fatalf("status %d\n%s\n%s", status, out, errs)
	}
	for _, expected := range []string{
		`^Starting a shop, Caddy with a gate in front of it, and a sale, with the stock in an embedded Redis\.\n30 buyers want 5 units at once\. .*, the stock in an embedded Redis\.\n\n`,
		`\n  sold +5  of 5 units, in 5 orders\n  oversold +0\n  refused +[0-9]+\n`,
		`\n    sold_out +[0-9]+  Sold out\.\n`,
		`\n  books +balance  stock 5 = 0 available \+ 0 held \+ 0 in doubt \+ 5 confirmed\n`,
		`\n  latency p50 +[0-9.,]+ ms  p99 [0-9.,]+ ms, longest [0-9.,]+ ms\n`,
		`\n\nEvery promise held: .* the answers to 30 buyers agree\.\n$`,
	} {
		if !regexp.MustCompile(expected).MatchString(out) {
			t.Errorf("expected %s in:\n%s", expected, out)
		}
	}
}

// TestDemoFailsWhenAPromiseIsBroken leads the crowd past the gate.
func TestDemoFailsWhenAPromiseIsBroken(t *testing.T) {
	t.Parallel()
	status, out, errs := runDemo(t, "past the gate")
	if status != 1 || !strings.Contains(errs, "promises were broken") {
		t.Errorf("status %d: %s", status, errs)
	}
	for _, expected := range []string{"oversold in the shop: 2", "has no reservation: it came past the gate", "was told yes without a reservation", "and one buyer may have 1"} {
		if !strings.Contains(out, expected) {
			t.Errorf("expected %q in:\n%s", expected, out)
		}
	}
	if strings.Contains(out, "Every promise held") {
		t.Errorf("all is said to be well:\n%s", out)
	}
}

// TestDemoStaysUp checks that the printed command buys, and that an interrupt ends the demo.
func TestDemoStaysUp(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	cmd, home := demoCommand(t, "--listen 127.0.0.1:0 --buyers 10 --stock 5 --redis "+redis.Addr())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "The shop's orders:") {
			break
		}
	}
	invitation := regexp.MustCompile(`curl -i (\S+) -H 'X-User-Id: me' -H 'Content-Type: (\S+)' \\\n +-d '(.*)'`).FindStringSubmatch(said.String())
	if invitation == nil || !strings.Contains(said.String(), "reverse_proxy 127.0.0.1:") || strings.Contains(said.String(), "key_prefix stockgate\n") {
		t.Fatalf("no invitation, or no Caddyfile:\n%s%s", &said, &errs)
	}
	for i, expected := range []string{"201 ", "403 limit_reached"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, invitation[1], strings.NewReader(invitation[3]))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-User-Id", "me")
		request.Header.Set("Content-Type", invitation[2])
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := fmt.Sprint(response.StatusCode, " ", response.Header.Get("Stockgate-Refusal")); got != expected {
			t.Errorf("purchase %d: %s, expected %s", i+1, got, expected)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("%v\n%s", err, &errs)
	}
	if left := filesIn(t, home); len(left) > 0 {
		t.Errorf("files were left behind: %q", left)
	}
	if keys, err := redis.Client().DBSize(context.WithoutCancel(t.Context())).Result(); err != nil || keys != 0 {
		t.Errorf("%d keys were left behind, %v", keys, err)
	}
}

func TestDemoThatCannotBe(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	gone := redistest.Start(t)
	gone.Stop()
	closed := gone.Addr()
	secured := redistest.Start(t, redistest.Password("secret"))
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"--once --listen " + taken.Addr().String(), 1, "address already in use; stop what is there, or give another address with --listen"},
		{"--once --redis " + closed, 3, "no redis at " + closed},
		{"--once --redis " + secured.Addr(), 3, "NOAUTH"},
		{"--once --redis redis://:wrong@" + secured.Addr(), 3, "WRONGPASS"},
		{"--once --buyers 0", 2, "--buyers 0: give 1 to"},
		{"--once --stock -1", 2, "--stock -1: give 1 to"},
		{"--once --listen 8080", 2, "write host:port"},
		{"--once --redis no:where:1", 2, "not host:port"},
		{"--once --redis {env.REDIS}", 2, "--redis: write host:port"},
		{"--json", 2, "give --once too"},
		{"now", 2, "no arguments"},
	} {
		status, out, errs := runDemo(t, test.args)
		if status != test.status || !strings.Contains(errs, test.says) || strings.Count(errs, "\n") != 1 || strings.Contains(errs, "wrong@") {
			t.Errorf("%s: status %d, expected %d and %q:\n%s%s", test.args, status, test.status, test.says, out, errs)
		}
	}
}
