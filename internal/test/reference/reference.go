// Package reference makes the parts of docs that the source already says: the options of the Caddyfile
// from the syntax and the struct comments of the modules, the metrics from their registration, and the
// commands from their own help. Its test compares docs with it, and with -update writes them.
package reference

import (
	"fmt"
	"os"
	"strings"
)

// Parts are texts by the name of the part of a page that they fill.
type Parts map[string]string

// Fill replaces what stands in a page between `<!--generated:NAME-->` and `<!--end-->` by the part of
// that name. A part that no page has, or a name without a part, is an error.
func (p Parts) Fill(page string) (string, error) {
	const begin, end = "<!--generated:", "<!--end-->"
	var out strings.Builder
	filled := make(map[string]bool)
	for {
		before, rest, found := strings.Cut(page, begin)
		out.WriteString(before)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(rest, "-->\n")
		_, rest, ended := strings.Cut(rest, end)
		text, known := p[name]
		if !closed || !ended || !known || filled[name] {
			return "", fmt.Errorf("the part %q is unknown, there twice, or does not end in %s", name, end)
		}
		filled[name] = true
		out.WriteString(begin + name + "-->\n\n" + strings.TrimSpace(text) + "\n\n" + end)
		page = rest
	}
	for name := range p {
		if !filled[name] {
			return "", fmt.Errorf("the page has no part %q", name)
		}
	}
	return out.String(), nil
}

// Check reports a page whose parts are not these. With update it writes them.
func (p Parts) Check(page string, update bool) error {
	have, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	want, err := p.Fill(string(have))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", page, err)
	case want == string(have):
		return nil
	case update:
		return os.WriteFile(page, []byte(want), 0o644)
	}
	return fmt.Errorf("%s is not what the source says: `make docs` writes it", page)
}
