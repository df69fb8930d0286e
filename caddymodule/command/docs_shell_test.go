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

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// doc is a page whose commands a test runs as they are printed.
type doc struct {
	*testing.T
	text  string
	lines []commandLine
	s     *sitetest.Site // whose Caddy the commands ask
	dir   string         // in which they run
	env   []string
	done  map[string]bool
}

func newDoc(t *testing.T, name string) *doc {
	t.Helper()
	text := page(t, root+name)
	return &doc{T: t, text: text, lines: commands(text), dir: t.TempDir(), done: make(map[string]bool)}
}

func (d *doc) file(name, content string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
}

// blockOf is the first block of that language on the page.
func (d *doc) blockOf(language string) string {
	d.Helper()
	for _, m := range block.FindAllStringSubmatch(d.text, -1) {
		if m[2] == language {
			return strings.ReplaceAll("\n"+m[3], "\n"+m[1], "\n")[1:]
		}
	}
	d.Fatalf("the page has no %s", language)
	return ""
}

// fileOf writes that block into a file, with changes.
func (d *doc) fileOf(language, name string, change ...string) {
	d.Helper()
	d.file(name, strings.NewReplacer(change...).Replace(d.blockOf(language)))
}

// command runs a line in a shell in which `caddy` is Caddy with Stockgate, and its commands
// ask the Caddy of the site.
func (d *doc) command(line string) *exec.Cmd {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	const caddy = `caddy() { if [ "$1" = stockgate ] && [ -n "$ADDRESS" ]; then shift; set -- stockgate --address "$ADDRESS" "$@"; fi; "$SELF" "$@"; }; `
	cmd := exec.CommandContext(d.Context(), "bash", "-c", "set -o pipefail; "+caddy+line)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), sitetest.BeCaddyEnv+"=1", "GORACE=atexit_sleep_ms=0", "SELF="+self, "HOME="+d.dir, "TZ=UTC")
	if d.s != nil {
		cmd.Env = append(cmd.Env, "ADDRESS="+d.s.AdminAddress())
	}
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

// ofShell is what a shell reads otherwise than as words.
var ofShell = regexp.MustCompile("[^-a-zA-Z0-9 ./:=,_@+%]")

// here runs a command in this process, where another one takes longer to begin than to run.
func (d *doc) here(args []string) string {
	d.Helper()
	d.Chdir(d.dir)
	for _, set := range append([]string{"HOME=" + d.dir}, d.env...) {
		name, value, _ := strings.Cut(set, "=")
		d.Setenv(name, value)
	}
	r := d.s.Run(args...)
	if r.Status != 0 {
		d.Errorf("caddy stockgate %q: %d\n%s%s", args, r.Status, r.Out, r.Errors)
	}
	return r.Out + r.Errors
}

// run runs a line, which must succeed. What stands in it only for example is replaced.
func (d *doc) run(line string, replace ...string) string {
	d.Helper()
	d.done[line] = true
	line = strings.NewReplacer(replace...).Replace(line)
	if args, ok := strings.CutPrefix(line, "caddy stockgate "); ok && !ofShell.MatchString(args) && d.s != nil {
		return d.here(strings.Fields(args))
	}
	out, err := d.command(line).CombinedOutput()
	if err != nil {
		d.Errorf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// all runs the lines that begin with a prefix and are not done.
func (d *doc) all(prefix string, replace ...string) {
	d.Helper()
	for _, c := range d.lines {
		if strings.HasPrefix(c.line, prefix) && !d.done[c.line] && c.whole() {
			d.run(c.line, replace...)
		}
	}
}

// line is the only line of the page that contains a text.
func (d *doc) line(contains string) commandLine {
	d.Helper()
	i := slices.IndexFunc(d.lines, func(c commandLine) bool { return strings.Contains(c.line, contains) })
	if i < 0 {
		d.Fatalf("the page has no command with %q", contains)
	}
	return d.lines[i]
}

var (
	number = regexp.MustCompile(`[0-9][0-9.,:]*`)
	spaces = regexp.MustCompile(`\s+`)
)

// shape is a text without its numbers and how it is laid out.
func shape(text string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(number.ReplaceAllString(text, "0"), " "))
}

// shows runs a line, whose output must be what stands below it, but for the numbers and how it
// is laid out. A line … stands for any number of lines, and … at the end of one for its rest.
func (d *doc) shows(c commandLine, replace ...string) {
	d.Helper()
	if c.output == "" {
		d.Errorf("nothing stands below %s", c.line)
	}
	out := shape(d.run(c.line, replace...))
	var want []string
	for _, part := range strings.Split(shape(c.output), "…") {
		want = append(want, regexp.QuoteMeta(strings.TrimSpace(part)))
	}
	if !regexp.MustCompile("^" + strings.Join(want, ".*") + "$").MatchString(out) {
		d.Errorf("%s prints\n%s\nthe page has\n%s", c.line, out, c.output)
	}
}

// follow runs a line that goes on until it is interrupted, up to its first output.
func (d *doc) follow(line string, replace ...string) {
	d.Helper()
	d.done[line] = true
	cmd := d.command("exec " + strings.Replace(strings.NewReplacer(replace...).Replace(line), "caddy stockgate", `"$SELF" stockgate --address "$ADDRESS"`, 1))
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		d.Errorf("%s prints nothing: %v", line, err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
}
