package shopurl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Body is a JSON document with placeholders in its strings.
type Body struct {
	// parts are literal text and the names of placeholders in turn.
	parts []string
}

// CompileBody reads the body of what, such as "the probe"; nil: it has none. The placeholders that has says yes
// to are filled in for each order, {env.…} and {file.…} at once. All other braces are literal.
func CompileBody(what, text string, has func(string) bool) (*Body, error) {
	if text == "" {
		return nil, nil
	}
	if strings.Contains(text, "{http.") {
		return nil, fmt.Errorf("the body of %s has one of Caddy's own placeholders, such as {path} or {query}: write a space after the brace where it is GraphQL", what)
	}
	text = caddy.NewReplacer().ReplaceKnown(hide(text), "")
	text = show(text)
	b, literal := new(Body), 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 || !has(text[i+1:i+end]) {
			continue
		}
		b.parts = append(b.parts, text[literal:i], text[i+1:i+end])
		i += end
		literal = i + 1
	}
	b.parts = append(b.parts, text[literal:])
	return b, b.check(what)
}

// hide keeps Caddy's replacer from all braces but those of {env.…} and {file.…}.
func hide(text string) string {
	var b strings.Builder
	for i := range len(text) {
		rest := text[i:]
		if text[i] == '{' && !strings.HasPrefix(rest, "{env.") && !strings.HasPrefix(rest, "{file.") {
			b.WriteByte(hidden)
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func show(text string) string { return strings.ReplaceAll(text, string(rune(hidden)), "{") }

// hidden stands for a brace; no JSON document has it.
const hidden = 0x01

// check checks that the body is JSON for every value, and that no value reaches the document
// of a GraphQL request, where it could say something else.
func (b *Body) check(what string) error {
	filled, _ := b.Fill(func(string) string { return "a" })
	var document any
	if json.Unmarshal(filled, &document) != nil {
		return fmt.Errorf("the body of %s is no JSON: placeholders stand inside of strings", what)
	}
	quoted, _ := b.Fill(func(string) string { return `a"b\c` })
	if json.Unmarshal(quoted, new(any)) != nil {
		return fmt.Errorf("the body of %s has a placeholder outside of a string", what)
	}
	object, ok := document.(map[string]any)
	if !ok {
		return fmt.Errorf("the body of %s is no JSON object", what)
	}
	one, _ := object["query"].(string)
	other, _ := b.Fill(func(string) string { return "b" })
	var second map[string]any
	if json.Unmarshal(other, &second) == nil && second["query"] != any(one) && one != "" {
		return errors.New("the document of " + what + " has a placeholder, by which a value could change the document: declare a variable, and put the placeholder into variables")
	}
	return nil
}

// Fill makes the body of one order; false: a value is missing.
func (b *Body) Fill(values Lookup) ([]byte, bool) {
	if b == nil {
		return nil, true
	}
	var out []byte
	for i, part := range b.parts {
		if i%2 == 0 {
			out = append(out, part...)
			continue
		}
		value := values(part)
		if value == "" {
			return nil, false
		}
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, false
		}
		out = append(out, quoted[1:len(quoted)-1]...)
	}
	return out, true
}

// Names calls yield for each placeholder in the body.
func (b *Body) Names(yield func(string) bool) {
	if b == nil {
		return
	}
	for i := 1; i < len(b.parts); i += 2 {
		if !yield(b.parts[i]) {
			return
		}
	}
}
