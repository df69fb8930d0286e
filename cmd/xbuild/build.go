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
	"slices"
	"strings"
)

// builder builds one Caddy.
type builder struct {
	config config
	output string // absolute
	stdout io.Writer
	stderr io.Writer
}

func (b builder) withXcaddy(ctx context.Context, xcaddy string) error {
	return b.command(ctx, "", xcaddy, b.config.xcaddyArgs(b.output)...)
}

// withGo does what xcaddy does: it makes a module in a temporary directory, whose
// program imports Caddy and each dependency.
func (b builder) withGo(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "xbuild-")
	if err != nil {
		return fmt.Errorf("make a directory to build in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(b.config.mainFile()), 0o600); err != nil {
		return fmt.Errorf("write the program: %w", err)
	}
	if err := b.seedSums(dir); err != nil {
		return err
	}
	edits, get := b.config.requirements()
	steps := [][]string{
		{"mod", "init", "caddy"},
		append([]string{"mod", "edit"}, edits...),
		// "." finds all other imports. "go mod tidy" would also fetch the imports of
		// dependencies' tests, which are not built here and which a proxy may not have.
		slices.Concat([]string{"get"}, get, []string{"."}),
	}
	for _, step := range steps {
		if err := b.command(ctx, dir, "go", step...); err != nil {
			return err
		}
	}
	if err := b.checkCaddy(ctx, dir); err != nil {
		return err
	}
	return b.command(ctx, dir, "go", "build", "-trimpath", "-ldflags", "-w -s", "-o", b.output, ".")
}

// seedSums copies the checksums that replaced modules have recorded, so that the go
// tool need not ask a server for them.
func (b builder) seedSums(dir string) error {
	var sums []byte
	for _, d := range b.config.Dependencies {
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

// checkCaddy fails when a dependency needs a newer Caddy than the config names:
// the go tool would silently build that one.
func (b builder) checkCaddy(ctx context.Context, dir string) error {
	want := b.config.CaddyVersion
	if want == "latest" {
		return nil
	}
	var out bytes.Buffer
	list := b
	list.stdout = &out
	if err := list.command(ctx, dir, "go", "list", "-m", "-f", "{{.Version}}", caddyModule); err != nil {
		return err
	}
	if got := strings.TrimSpace(out.String()); got != want {
		return fmt.Errorf("caddy_version is %s, but a dependency needs %s: name that version or newer", want, got)
	}
	return nil
}

// command runs one step and shows its output.
func (b builder) command(ctx context.Context, dir, name string, args ...string) error {
	line := strings.Join(append([]string{filepath.Base(name)}, args...), " ")
	fmt.Fprintln(b.stderr, "+", line)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, b.stdout, b.stderr
	// Neither a workspace nor a vendor directory around the build may choose
	// other versions than the config.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GO111MODULE=on")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	return nil
}
