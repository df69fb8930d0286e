package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const caddyModule = "github.com/caddyserver/caddy/v2"

// build takes the steps of xcaddy: a module of its own in a temporary directory, whose
// program imports Caddy and each dependency. Flags are those of "go build".
func build(ctx context.Context, c config, output string, flags []string, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "xbuild-")
	if err != nil {
		return fmt.Errorf("make a directory to build in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(c.mainFile()), 0o600); err != nil {
		return fmt.Errorf("write the program: %w", err)
	}
	if err := c.seedSums(dir); err != nil {
		return err
	}
	edits, get := c.requirements()
	for _, step := range [][]string{
		{"mod", "init", "caddy"},
		append([]string{"mod", "edit"}, edits...),
		// "." finds whatever else the program imports. "go mod tidy" would
		// also fetch what the tests of dependencies import, which nothing
		// needs here and a proxy may not have.
		slices.Concat([]string{"get", "--"}, get, []string{"."}),
	} {
		if _, err := goTool(ctx, dir, stderr, step...); err != nil {
			return err
		}
	}
	if err := c.checkCaddy(ctx, dir, stderr); err != nil {
		return err
	}
	_, err = goTool(ctx, dir, stderr, slices.Concat([]string{"build", "-o", output}, flags, []string{"."})...)
	return err
}

// checkCaddy fails when a dependency needs a newer Caddy than the config names:
// the go tool would build that one without a word.
func (c config) checkCaddy(ctx context.Context, dir string, stderr io.Writer) error {
	got, err := goTool(ctx, dir, stderr, "list", "-m", "-f", "{{.Version}}", caddyModule)
	if err == nil && got != c.CaddyVersion && c.CaddyVersion != "latest" {
		err = fmt.Errorf("caddy_version is %s, but a dependency needs %s: name that version or newer", c.CaddyVersion, got)
	}
	return err
}

// goTool runs one step, shows what it says, and returns what it prints.
func goTool(ctx context.Context, dir string, stderr io.Writer, args ...string) (string, error) {
	stderr = &oneAtATime{to: stderr}
	line := "go " + strings.Join(args, " ")
	fmt.Fprintln(stderr, "+", line)
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, stderr
	// Neither a workspace nor a vendor directory around the build may choose
	// other versions than the config.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GO111MODULE=on")
	stop := tick(stderr, "go "+args[0])
	err := cmd.Run()
	stop()
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// oneAtATime is a writer that the go tool and tick share.
type oneAtATime struct {
	mu sync.Mutex
	to io.Writer
}

func (w *oneAtATime) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// tickEvery is how often a step says that it goes on.
const tickEvery = 15 * time.Second

// tick writes again and again that a step goes on, until stop is called.
func tick(stderr io.Writer, what string) (stop func()) {
	begun, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(tickEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(stderr, "%s goes on, for %v so far\n", what, time.Since(begun).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// mainFile is the program that is built: Caddy and each module.
func (c config) mainFile() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package main\n\nimport (\n\tcaddycmd %q\n\n\t_ %q\n", caddyModule+"/cmd", caddyModule+"/modules/standard")
	for _, d := range c.Dependencies {
		fmt.Fprintf(&b, "\t_ %q\n", d.Module)
	}
	b.WriteString(")\n\nfunc main() { caddycmd.Main() }\n")
	return b.String()
}

var releases = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+incompatible)?$`)

// requirements splits what the program needs: edits of go.mod, for whatever is
// known without asking a server, and arguments of "go get" for the rest.
func (c config) requirements() (edits, get []string) {
	for _, d := range slices.Concat([]dependency{{Module: caddyModule, Version: c.CaddyVersion}}, c.Dependencies) {
		switch {
		case d.Replace != "":
			edits = append(edits, "-require="+d.Module+"@"+placeholder(d.Module), "-replace="+d.Module+"="+d.Replace)
		case releases.MatchString(d.Version):
			edits = append(edits, "-require="+d.Module+"@"+d.Version)
		default:
			get = append(get, d.Module+"@"+d.Version)
		}
	}
	return edits, get
}

var majorSuffix = regexp.MustCompile(`(?:/|^gopkg\.in/.*\.)(v[0-9]+)$`)

// placeholder is a version that a replaced module may be required with: its
// major version must match the module's path.
func placeholder(module string) string {
	if m := majorSuffix.FindStringSubmatch(module); m != nil {
		return m[1] + ".0.0"
	}
	return "v0.0.0"
}

// seedSums copies the checksums that replaced modules have recorded, so that
// the go tool need not ask a server for what their developers have already.
func (c config) seedSums(dir string) error {
	var sums []byte
	for _, d := range c.Dependencies {
		if d.Replace == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(d.Replace, "go.sum"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the checksums of %s: %w", d.Module, err)
		}
		sums = append(append(sums, bytes.TrimSpace(text)...), '\n')
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil {
		return fmt.Errorf("write go.sum: %w", err)
	}
	return nil
}

// expect fails when a Caddy does not run, or lacks one of the modules.
func expect(ctx context.Context, caddy string, ids []string) error {
	out, err := exec.CommandContext(ctx, caddy, "list-modules").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return fmt.Errorf("the build went well, but %s list-modules did not: %w", caddy, err)
	}
	has := strings.Split(string(out), "\n")
	missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(has, id) })
	if len(missing) > 0 {
		return fmt.Errorf("the Caddy that was built lacks %s: no dependency registers it", strings.Join(missing, ", "))
	}
	return nil
}
