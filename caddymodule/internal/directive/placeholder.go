package directive

import (
	"slices"
	"strings"
)

// ownNames begin the placeholders that the gate reads itself. caddyNames begin those that
// Caddy and its standard modules have; a plugin may add others.
var (
	ownNames   = []string{"json", "form", "param", "query", "header", "cookie", "path", "jwt", "client_ip", "graphql", "lookup"}
	caddyNames = []string{"http", "env", "file", "system", "time", "tls", "vars", "err", "args"}
)

// UnknownPlaceholders returns the placeholders in values that neither a gate nor Caddy has, each
// once.
func UnknownPlaceholders(values []string) (names []string) {
	for _, expr := range values {
		for _, name := range placeholdersIn(expr) {
			space, _, _ := strings.Cut(name, ".")
			if !slices.Contains(ownNames, space) && !slices.Contains(caddyNames, space) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// BarePlaceholders returns the values that are probably placeholders without their braces, such as
// json.sku, each once.
func BarePlaceholders(values []string) (bare []string) {
	for _, expr := range values {
		space, rest, _ := strings.Cut(expr, ".")
		dotted := rest != "" && (slices.Contains(ownNames, space) || space == "http")
		if (dotted || expr == "client_ip") && !strings.ContainsAny(expr, "{}") && !slices.Contains(bare, expr) {
			bare = append(bare, expr)
		}
	}
	return bare
}

// UnderscoreHeaders returns the headers that values read by a name with an underscore, each once.
func UnderscoreHeaders(values []string) (headers []string) {
	for _, expr := range values {
		for _, name := range placeholdersIn(expr) {
			name = strings.TrimPrefix(name, "http.request.")
			header, ok := strings.CutPrefix(name, "header.")
			if ok && strings.Contains(header, "_") && !slices.Contains(headers, header) {
				headers = append(headers, header)
			}
		}
	}
	return headers
}

// placeholdersIn returns the names between the braces of an expression.
func placeholdersIn(expr string) (names []string) {
	for {
		_, rest, ok := strings.Cut(expr, "{")
		if !ok {
			return names
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok {
			return names
		}
		names, expr = append(names, name), after
	}
}

// Instead suggests the placeholder that is meant, if there is one that looks alike.
func Instead(name string) string {
	space, rest, dotted := strings.Cut(name, ".")
	for _, own := range slices.Concat(ownNames, caddyNames) {
		if !alike(space, own) {
			continue
		}
		if dotted {
			own += "." + rest
		}
		return ": write {" + own + "}"
	}
	return ""
}

// alike tells whether one edit makes one word of the other: a letter that is missing, added
// or wrong, or two that are exchanged.
func alike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(a) < 2 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
