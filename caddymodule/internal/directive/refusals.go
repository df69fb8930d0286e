package directive

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Refusals reads how some refusals look, and appends that to earlier lines. First come the
// reasons; a style, a status or a body ends them. A single word of a to z and _ is taken
// for a reason, not for a body, so that a misspelt reason is an error.
func Refusals(into *[]refuse.Appearance) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args := d.RemainingArgs() // a body may be empty
		var style refuse.Appearance
		for len(args) > 0 && looksLikeReason(args[0]) {
			reason := args[0]
			if err := checkReason(d, reason, style.Reasons); err != nil {
				return err
			}
			style.Reasons = append(style.Reasons, reason)
			args = args[1:]
		}
		named := len(style.Reasons) > 0
		switch {
		case len(args) == 1 && (args[0] == "problem" || args[0] == "error"):
			style.Style = args[0]
			if !named {
				style.Reasons = []string{"*"}
			}
		case !named:
			return d.Errf("refuse names no reason, nor * for all: write `%s`", usage)
		case len(args) == 0:
			return d.Errf("refuse does not say how: write `%s`", usage)
		default:
			answer, err := Answer(d, "refuse", usage, args)
			if err != nil {
				return err
			}
			style.Status, style.Style, style.Body = answer.Status, answer.Style, answer.Body
		}
		*into = append(*into, style)
		return nil
	}
}

// Answer reads a status, a body or both from the arguments of an option.
func Answer(d *caddyfile.Dispenser, option, usage string, args []string) (s refuse.Appearance, err error) {
	if IsNumber(args[0]) {
		status, err := strconv.Atoi(args[0])
		if err != nil || status < 200 || status > 599 {
			return s, d.Errf("%s: status %s is outside 200 to 599", option, args[0])
		}
		s.Status = status
		args = args[1:]
	}
	if len(args) > 0 {
		s.Style, s.Body = "body", args[0]
		args = args[1:]
	}
	if len(args) > 0 {
		return s, d.Errf("%s: %q is too much: write `%s`; quote a body that has spaces", option, args[0], usage)
	}
	return s, nil
}

func checkReason(d *caddyfile.Dispenser, reason string, earlier []string) error {
	if reason != "*" {
		if _, ok := sale.KindOf(sale.Reason(reason)); !ok {
			return d.Errf("refuse: there is no reason %q: there are %s", reason, reasons())
		}
	}
	if slices.Contains(earlier, reason) {
		return d.Errf("refuse: %s is named twice", reason)
	}
	if len(earlier) > 0 && (reason == "*" || earlier[0] == "*") {
		return d.Errf("refuse: * is all reasons: write none beside it")
	}
	return nil
}

func reasons() string {
	names := make([]string, 0, len(sale.Kinds))
	for _, k := range sale.Kinds {
		names = append(names, string(k.Reason))
	}
	return strings.Join(names, ", ")
}

func looksLikeReason(s string) bool {
	switch s {
	case "*":
		return true
	case "", "problem", "error":
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}
