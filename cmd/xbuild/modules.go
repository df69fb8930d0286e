package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// modules maps the id of each Caddy module to the Go module that it comes from.
type modules map[string]string

// listModules asks a Caddy for its modules.
func listModules(ctx context.Context, caddy string) (modules, error) {
	out, err := exec.CommandContext(ctx, caddy, "list-modules", "--packages").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("the build went well, but %s list-modules did not: %w", caddy, err)
	}
	return parseModules(string(out)), nil
}

// parseModules reads lines of "id module [=> replacement]". The sums between
// them are indented.
func parseModules(text string) modules {
	m := modules{}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); line == "" || line[0] == ' ' {
			continue
		}
		id, rest, _ := strings.Cut(line, " ")
		from, _, _ := strings.Cut(rest, " ")
		m[id] = from
	}
	return m
}

// of lists the ids that come from a Go module.
func (m modules) of(module string) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if m[id] == module {
			ids = append(ids, id)
		}
	}
	return ids
}

// expect fails when one of the ids is missing.
func (m modules) expect(ids []string) error {
	var missing []string
	for _, id := range ids {
		if _, ok := m[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the Caddy that was built lacks %s: no dependency registers it", strings.Join(missing, ", "))
	}
	return nil
}

// report says what was built.
func report(w io.Writer, output string, c config, m modules) {
	fmt.Fprintf(w, "%s: Caddy %s with %d modules\n", output, c.CaddyVersion, len(m))
	for _, d := range c.Dependencies {
		fmt.Fprintf(w, "from %s:\n", d.Module)
		for _, id := range m.of(d.Module) {
			fmt.Fprintf(w, "  %s\n", id)
		}
	}
}
