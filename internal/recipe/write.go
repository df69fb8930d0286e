package recipe

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	variable = regexp.MustCompile(`\{\$([A-Z_]+)(?::([^}]*))?\}`)
	secret   = regexp.MustCompile(`\{env\.[A-Z_]+\}`)
)

// Default returns what the configuration has where the environment has no variable of that name.
func (r *Recipe) Default(name string) string {
	for _, m := range variable.FindAllStringSubmatch(r.Caddyfile, -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}

// Here returns the configuration with other defaults. The environment can still change them.
func (r *Recipe) Here(defaults map[string]string) string {
	return variable.ReplaceAllStringFunc(r.Caddyfile, func(text string) string {
		name := variable.FindStringSubmatch(text)[1]
		if value, ok := defaults[name]; ok {
			return fmt.Sprintf("{$%s:%s}", name, value)
		}
		return text
	})
}

// Checked returns the configuration for a check, whatever the environment says: with other global options, with
// another Redis, without its key of tokens and its secrets, at a site that begins so, and before another shop.
func (r *Recipe) Checked(global, store, site, shop string) string {
	before, after, _ := strings.Cut(r.Caddyfile, "\n}\n")
	text := "{\n" + global + "\n\tstockgate {\n" + store + "\n" + kept(before) + "\t}\n}\n" + after
	text = strings.Replace(text, "{$SITE:"+r.Default("SITE")+"} {", site, 1)
	text = secret.ReplaceAllString(text, "check")
	return variable.ReplaceAllStringFunc(text, func(text string) string {
		m := variable.FindStringSubmatch(text)
		if m[1] == "SHOP" {
			return shop
		}
		return m[2]
	})
}

// kept returns the options of the block stockgate in global options, but for redis and token.
func kept(global string) string {
	_, options, _ := strings.Cut(global, "\tstockgate {\n")
	var all strings.Builder
	drop := false
	for line := range strings.Lines(options) {
		if line == "\t}" || line == "\t}\n" {
			break
		}
		if strings.HasPrefix(line, "\t\t") && !strings.HasPrefix(line, "\t\t\t") && strings.TrimSpace(line) != "}" {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			drop = name == "redis" || name == "token"
		}
		if !drop {
			all.WriteString(line)
		}
	}
	return all.String()
}

// LineWith returns the first line of a text, without spaces around it, that has a part, or that begins with it;
// empty: there is none.
func LineWith(text, part string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(part, "{") && strings.Contains(line, part) || strings.HasPrefix(line, part) {
			return line
		}
	}
	return ""
}

// Mentions returns how the configuration names a variable, of Caddy's when it reads the file or when it runs.
func (r *Recipe) Mentions(name string) string {
	if strings.Contains(r.Caddyfile, "{env."+name+"}") {
		return "{env." + name + "}"
	}
	return "{$" + name
}

// with writes lines into an answer.
func (a *answers) with(answer string, lines []CartLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, strings.NewReplacer("{sku}", fmt.Sprintf("%q", l.SKU), "{quantity}", fmt.Sprint(l.Quantity)).Replace(a.Line))
	}
	return strings.ReplaceAll(answer, "{lines}", strings.Join(all, ","))
}

// CartLine is a line of a cart.
type CartLine struct {
	SKU      string
	Quantity int64
}

// To returns the answer to a question of the gate, which has a text in its URL or its body, after an order was
// taken or refused; empty: it is no question of the configuration.
func (a *answers) To(question string, lines []CartLine, taken bool) string {
	switch {
	case strings.Contains(question, a.Lookup.Asks):
		return a.with(a.Lookup.Answer, lines)
	case strings.Contains(question, a.Ask.Asks) && taken:
		return a.with(a.Ask.Answer, lines)
	case strings.Contains(question, a.Ask.Asks):
		return a.with(a.Ask.Refused, lines)
	}
	return ""
}
