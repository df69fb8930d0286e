package resolve

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/stockgate/stockgate/filters/outcome"
)

// maxID bounds the id of a payment, in bytes.
const maxID = 128

// idSource is where a webhook has the id of a payment.
type idSource struct{ kind, name string }

// readID reads a placeholder, also as Caddyfiles write it out.
func readID(text string) (idSource, error) {
	name, ok := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	kind, of, dot := strings.Cut(strings.TrimPrefix(name, "http.request.uri."), ".")
	switch {
	case text == "":
		return idSource{}, errors.New("id is missing: say where the webhook has the id of the payment, such as `id {form.id}`")
	case !ok || !closed || !dot || of == "" || kind != "form" && kind != "json" && kind != "query":
		return idSource{}, fmt.Errorf("id %s: write {form.NAME}, {json.PATH} or {query.NAME}", text)
	case kind == "json":
		if err := (outcome.Paths{of}).Check(); err != nil {
			return idSource{}, fmt.Errorf("id: %w", err)
		}
	}
	return idSource{kind, of}, nil
}

// in returns the id; empty: there is none, or not one alone.
func (s idSource) in(u *url.URL, body []byte) string {
	text := u.RawQuery
	switch s.kind {
	case "json":
		id, _ := outcome.Paths{s.name}.In(body)
		return id
	case "form":
		text = string(body)
	}
	values, err := url.ParseQuery(text)
	if err != nil || len(values[s.name]) != 1 {
		return ""
	}
	return values.Get(s.name)
}

// isID reports whether a text is the id of a payment: nothing in it could lead to another URL.
func isID(text string) bool {
	return text != "" && len(text) <= maxID && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
