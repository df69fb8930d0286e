package command_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/internal/sitetest"
	"github.com/stockgate/stockgate/ledger/sqlite"
)

const docs = "../../docs/"

func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is what stands under a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	after, _, _ = strings.Cut(after, "\n## ")
	return after
}

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	codeOfTable  = regexp.MustCompile(`(?m)^\|.*\|$`)
	codeSpan     = regexp.MustCompile("`(caddy [^`]+)`")
	comment      = regexp.MustCompile(`\s+# .*`)
)

// commands are the command lines of a text: those of its console blocks and of its tables, in
// their order.
func commands(text string) (lines []string) {
	type found struct {
		at   int
		line string
	}
	var all []found
	for _, m := range consoleBlock.FindAllStringSubmatchIndex(text, -1) {
		for line := range strings.Lines(text[m[2]:m[3]]) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				all = append(all, found{m[2], comment.ReplaceAllString(line, "")})
			}
		}
	}
	for _, m := range codeOfTable.FindAllStringIndex(text, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(text[m[0]:m[1]], -1) {
			all = append(all, found{m[0], span[1]})
		}
	}
	for len(all) > 0 { // the first one, again and again: there are few
		first := 0
		for i := range all {
			if all[i].at < all[first].at {
				first = i
			}
		}
		lines = append(lines, all[first].line)
		all = append(all[:first], all[first+1:]...)
	}
	return lines
}

// Every `caddy stockgate …` of the README and of docs is a command that exists, with flags and
// a number of arguments that it takes.
func TestCommandsOfDocs(t *testing.T) {
	files, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	optional, ofFlag, argument := regexp.MustCompile(`\[[^]]*\]`), regexp.MustCompile(`--\S+ (<[^>]*>|\S+)`), regexp.MustCompile(`<[^>]+>`)
	optionalArgument := regexp.MustCompile(`\[<`)
	checked := 0
	for _, file := range append(files, "../../README.md") {
		for _, line := range commands(codeOfTable.ReplaceAllString(page(t, file), "")) { // tables have SKU|ITEM and the like
			_, rest, ok := strings.Cut(line, "caddy stockgate ")
			if !ok {
				continue
			}
			rest, _, _ = strings.Cut(rest, " < ")
			rest, _, _ = strings.Cut(rest, " > ")
			rest, _, _ = strings.Cut(rest, " | ")
			root := &cobra.Command{Use: "stockgate"}
			caddycmd.Commands()["stockgate"].CobraFunc(root)
			cmd, args, err := root.Find(strings.Fields(rest))
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, line, err)
				continue
			}
			use := ofFlag.ReplaceAllString(optional.ReplaceAllString(cmd.Use, ""), "")
			given := cmd.Flags().Args()
			if cmd.DisableFlagParsing { // it takes negative numbers
				given = slices.DeleteFunc(args, func(arg string) bool { return arg == "--" })
			}
			least := len(argument.FindAllString(use, -1))
			most := least + len(optionalArgument.FindAllString(cmd.Use, -1))
			if have := len(given); (have < least || have > most) && !cmd.HasSubCommands() {
				t.Errorf("%s: %s: it has %d arguments, %q takes %d to %d", file, line, have, cmd.Use, least, most)
			} else if cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 {
				t.Errorf("%s: %s: there is no such command", file, line)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d commands were found", checked)
	}
}

// durable is a redis-server as docs/install.md configures it: with another one the doctor finds
// an error. maxmemory-policy is noeviction by default.
func durable(t *testing.T) (*redistest.Server, map[string]any) {
	t.Helper()
	server, app := sitetest.Redis(t)
	for name, value := range map[string]string{"appendonly": "yes", "appendfsync": "always"} {
		if err := server.Client().ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return server, app
}

// shell runs command lines as they are printed, against the Caddy of a site.
type shell struct {
	t    *testing.T
	s    *sitetest.Site
	dir  string
	done map[string]bool
}

func newShell(t *testing.T, s *sitetest.Site) *shell {
	return &shell{t, s, t.TempDir(), map[string]bool{}}
}

func (sh *shell) file(name, content string) {
	sh.t.Helper()
	if err := os.WriteFile(filepath.Join(sh.dir, name), []byte(content), 0o600); err != nil {
		sh.t.Fatal(err)
	}
}

func (sh *shell) command(line string) *exec.Cmd {
	sh.t.Helper()
	self, err := os.Executable()
	if err != nil {
		sh.t.Fatal(err)
	}
	const caddy = `caddy() { if [ "$1" = stockgate ]; then shift; set -- stockgate --address "$ADDRESS" "$@"; fi; "$SELF" "$@"; }; `
	cmd := exec.CommandContext(sh.t.Context(), "sh", "-c", caddy+line)
	cmd.Dir = sh.dir
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "SELF="+self, "ADDRESS="+sh.s.AdminAddress(), "HOME="+sh.dir)
	return cmd
}

// run runs a line, which must succeed.
func (sh *shell) run(line string) string {
	sh.t.Helper()
	sh.done[line] = true
	out, err := sh.command(line).CombinedOutput()
	if err != nil {
		sh.t.Errorf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// follow runs a line that goes on until it is interrupted, up to its first output.
func (sh *shell) follow(line string) {
	sh.t.Helper()
	sh.done[line] = true
	cmd := sh.command("exec " + strings.Replace(line, "caddy stockgate", `"$SELF" stockgate --address "$ADDRESS"`, 1))
	out, err := cmd.StdoutPipe()
	if err != nil {
		sh.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		sh.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		sh.t.Errorf("%s prints nothing: %v", line, err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
}

// The runbook's commands, from the week before to the week after, run as they are printed.
func TestRunbook(t *testing.T) {
	server, app := durable(t)
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": ledger}
	s := sitetest.Open(t, app)
	sh := newShell(t, s)
	text := page(t, docs+"runbook.md")
	sh.file("double11.yaml", strings.ReplaceAll(sitetest.SaleFile, "plain", "20002001"))
	shopper := sitetest.NewShopper(t, server)

	for _, heading := range []string{"The week before", "The hour before"} {
		for _, line := range commands(section(t, text, heading)) {
			sh.run(line)
		}
	}
	shopper.Hold("r1", "20002001", 1, time.Hour)
	for _, line := range commands(section(t, text, "During the sale")) {
		if strings.Contains(line, "journal tail") {
			sh.follow(line)
			continue
		}
		plain := strings.Replace(line, " ID", " r1", 1)
		sh.run(plain)
		sh.done[line] = true
	}
	shopper.Must(shopper.Confirm(t.Context(), "double11", "r1", "answer", "status_201"))

	// before it is closed: what it takes when Redis has lost it, and when the shop was away
	failures := commands(section(t, text, "When something fails"))
	caughtUp(t, sh, ledger)
	if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, line := range failures {
		if strings.Contains(line, "key replace") {
			sh.done[line] = true // TestKeyReplace runs it: it needs another key
			continue
		}
		sh.run(line)
	}
	for _, line := range commands(section(t, text, "After the sale")) {
		sh.run(line)
	}
	for _, line := range commands(text) {
		if !sh.done[line] {
			t.Errorf("nothing runs %s", line)
		}
	}
	if len(sh.done) < 20 {
		t.Errorf("only %d commands were found", len(sh.done))
	}
}

// caughtUp waits until the ledger has every movement of the sale.
func caughtUp(t *testing.T, sh *shell, ledger string) {
	t.Helper()
	l, err := sqlite.Open(ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := sitetest.Do[adminapi.JournalState](sh.s, "GET", "/stockgate/sales/double11/journal", "").Last
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		at, err := l.Position(t.Context(), "double11")
		if err == nil && want > 0 && at.Seq >= want {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("the ledger does not follow: %+v of %d %v", at, want, err)
		}
	}
}

// docs/install.md: its sale is loaded and opened as printed, its Caddyfile satisfies the
// doctor, and `caddy completion` completes the commands.
func TestInstall(t *testing.T) {
	_, app := durable(t)
	sh := newShell(t, sitetest.Open(t, app))
	text := page(t, docs+"install.md")
	for name, block := range map[string]string{"Caddyfile": "caddyfile", "sale.yaml": "yaml"} {
		content := regexp.MustCompile("(?s)```" + block + "\n(.*?)```").FindStringSubmatch(text)
		if content == nil {
			t.Fatalf("it has no %s", name)
		}
		sh.file(name, content[1])
	}
	ran := 0
	for _, line := range commands(section(t, text, "Load a sale")) {
		if strings.HasPrefix(line, "caddy stockgate") { // not `caddy run`: the site runs
			sh.run(line)
			ran++
		}
	}
	if out := sh.run("caddy stockgate sale list"); !strings.Contains(out, "double11  open") {
		t.Error(out)
	}
	for _, of := range []string{"bash", "zsh", "fish"} {
		if out := sh.run("caddy completion " + of); !strings.Contains(text, "caddy completion "+of) || !strings.Contains(out, "__complete") {
			t.Errorf("the completion of %s: %.200q", of, out)
		}
	}
	if out := sh.run("caddy __complete stockgate sale o"); !strings.HasPrefix(out, "open\t") {
		t.Errorf("%q completes to %q", "caddy stockgate sale o", out)
	}
	if ran != 4 {
		t.Errorf("%d commands were run", ran)
	}
}

// Commands of other pages, which work on a sale that has holds, run as they are printed.
func TestCommandsRun(t *testing.T) {
	server, app := durable(t)
	s := sitetest.Open(t, app)
	sh := newShell(t, s)
	s.OpenSale()
	shopper := sitetest.NewShopper(t, server)
	shopper.Hold("r1", "plain", 1, time.Hour)
	shopper.Must(shopper.Doubt(t.Context(), "double11", "r1", "timeout"))
	sh.file("orders.csv", "reservation\nr1\n")
	ran := 0
	for _, name := range []string{"journal.md", "api.md", "scripts.md", "dashboard.md", "sales.md"} {
		for _, line := range commands(page(t, docs+name)) {
			switch {
			case !strings.HasPrefix(line, "caddy stockgate") || strings.Contains(line, "redis-cli") || strings.ContainsAny(line, "<[|"):
				continue
			case strings.Contains(line, "journal tail") || strings.Contains(line, "--follow"):
				sh.follow(strings.Replace(line, "--from 1001 ", "", 1))
			default:
				sh.run(line)
			}
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were found", ran)
	}
}
