package movein

import (
	"fmt"
	"slices"
	"strings"
)

// Pattern is a text with placeholders, such as bought_{sku}. \{, \} and \\ stand for
// themselves.
type Pattern []part

// part is a piece of a pattern: a placeholder with a name, or else plain text.
type part struct{ name, text string }

// other matches anything that is of no interest. It may occur several times.
const other = "other"

// ParsePattern reads a pattern that may have these placeholders.
func ParsePattern(text string, names ...string) (Pattern, error) {
	var p Pattern
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			p = append(p, part{text: plain.String()})
			plain.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && strings.IndexByte(`{}\`, text[i+1]) >= 0:
			i++
			plain.WriteByte(text[i])
		case c == '}':
			return nil, fmt.Errorf(`%q has a } without a {: write \} for a brace that is none of a placeholder`, text)
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf(`%q has a { without a }: write \{ for a brace that is none of a placeholder`, text)
			}
			name := text[i+1 : i+end]
			i += end
			switch {
			case !slices.Contains(names, name):
				return nil, fmt.Errorf(`%q has the placeholder {%s}: there are {%s} here; write \{ for a brace that is none of a placeholder`, text, name, strings.Join(names, "}, {"))
			case name != other && p.Has(name):
				return nil, fmt.Errorf("%q has {%s} twice", text, name)
			}
			flush()
			if n := len(p); n > 0 && p[n-1].name != "" {
				return nil, fmt.Errorf("%q has {%s} and {%s} side by side: nothing says where the first one ends", text, p[n-1].name, name)
			}
			p = append(p, part{name: name})
		default:
			plain.WriteByte(c)
		}
	}
	flush()
	return p, nil
}

// Has reports whether a placeholder occurs.
func (p Pattern) Has(name string) bool {
	return slices.ContainsFunc(p, func(x part) bool { return x.name == name })
}

// Fill puts a value in the place of a placeholder.
func (p Pattern) Fill(name, value string) Pattern {
	var out Pattern
	for _, x := range p {
		if x.name == name {
			x = part{text: value}
		}
		if n := len(out); n > 0 && x.name == "" && out[n-1].name == "" {
			out[n-1].text += x.text
			continue
		}
		out = append(out, x)
	}
	return out
}

// Text is a pattern without placeholders.
func (p Pattern) Text() string {
	var b strings.Builder
	for _, x := range p {
		b.WriteString(x.text)
	}
	return b.String()
}

// glob is the pattern as Redis's SCAN knows it.
func (p Pattern) glob() string {
	var b strings.Builder
	for _, x := range p {
		if x.name != "" {
			b.WriteByte('*')
			continue
		}
		for i := range len(x.text) {
			if strings.IndexByte(`*?[]\^-`, x.text[i]) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(x.text[i])
		}
	}
	return b.String()
}

// match gives the placeholders their values; false: the text has another form. A value is not
// empty. It ends where the plain text behind it begins for the first time; where that text is
// the last part, at the end.
func (p Pattern) match(text string, set func(name, value string)) bool {
	for i, x := range p {
		last := i == len(p)-1
		switch {
		case x.name == "" && last:
			return text == x.text
		case x.name == "":
			rest, ok := strings.CutPrefix(text, x.text)
			if !ok {
				return false
			}
			text = rest
		case text == "":
			return false
		case last:
			set(x.name, text)
			return true
		default:
			end := strings.Index(text[1:], p[i+1].text) + 1
			if i+1 == len(p)-1 {
				end = len(text) - len(p[i+1].text)
				if end < 1 || !strings.HasSuffix(text, p[i+1].text) {
					return false
				}
			}
			if end < 1 {
				return false
			}
			set(x.name, text[:end])
			text = text[end:]
		}
	}
	return text == ""
}

// cuts returns the plain text at which match ends a value too early, because it begins inside of
// the value; empty: match gives the whole value.
func (p Pattern) cuts(name, value string) string {
	for i, x := range p {
		// where nothing or the last part is behind it, the value ends at the end of the text
		if x.name != name || i+2 >= len(p) {
			continue
		}
		if end := p[i+1].text; strings.Index((value + end)[1:], end)+1 != len(value) {
			return end
		}
	}
	return ""
}
