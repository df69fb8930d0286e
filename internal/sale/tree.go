package sale

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// syntaxTree reads YAML, or JSON if it is JSON: YAML readers fail on tabs, long keys
// and JSON's escapes.
func syntaxTree(data []byte) (*yaml.Node, error) {
	start := bytes.TrimLeft(data, " \t\r\n")
	if !bytes.HasPrefix(start, []byte("{")) {
		return yamlTree(data)
	}
	root, jsonErr := jsonTree(data)
	if jsonErr == nil {
		return root, nil
	}
	root, err := yamlTree(data)
	if err != nil && bytes.HasPrefix(bytes.TrimLeft(start[1:], " \t\r\n"), []byte(`"`)) {
		return nil, jsonErr // quoted fields: it is meant as JSON
	}
	return root, err
}

// yamlTree reads exactly one YAML document.
func yamlTree(data []byte) (root *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, Problems{{Text: "the file is empty: a sale needs id, starts_at, ends_at and items"}}
	case err != nil:
		return nil, yamlProblem(err, data)
	}
	switch err := decoder.Decode(&next); {
	case err == nil:
		return nil, Problems{{Line: next.Line, Text: "a second document begins: one file holds one sale"}}
	case !errors.Is(err, io.EOF):
		return nil, yamlProblem(err, data)
	}
	return document.Content[0], nil
}

// yamlProblem turns an error of the library into a problem, in the line where what is
// broken begins.
func yamlProblem(err error, data []byte) Problems {
	load, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return Problems{{Text: "cannot be read as YAML: " + err.Error()}}
	}
	line := cmp.Or(load.ContextMark.Line, load.Mark.Line, 1)
	if name, ok := strings.CutPrefix(load.Message, "unknown anchor '"); ok {
		alias := "*" + strings.TrimSuffix(name, "' referenced")
		return Problems{{Line: line, Text: fmt.Sprintf("aliases such as %s are not supported: write the value out", quote(alias))}}
	}
	last := lineAt(data, len(bytes.TrimRight(data, " \t\r\n"))) // where what is missing at the end is missing
	return Problems{{Line: min(line, last), Text: "cannot be read as YAML: " + load.Message}}
}

// jsonTree reads one JSON object into the same tree that YAML gives, so that
// both are read by one reader.
func jsonTree(data []byte) (*yaml.Node, error) {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		problem := Problem{Text: "cannot be read as JSON: " + err.Error()}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			problem.Line = lineAt(data, int(syntax.Offset))
		}
		return nil, Problems{problem}
	}
	t := jsonReader{decoder: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	t.decoder.UseNumber()
	return t.node()
}

// jsonReader makes nodes from tokens. The input is known to be valid JSON and not
// nested deeper than encoding/json allows.
type jsonReader struct {
	decoder *json.Decoder
	data    []byte
	at      int // where the last token ended
	line    int
}

func (t *jsonReader) node() (*yaml.Node, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, Problems{{Line: t.line, Text: "cannot be read as JSON: " + err.Error()}}
	}
	end := int(t.decoder.InputOffset())
	t.line += bytes.Count(t.data[t.at:end], []byte("\n"))
	t.at = end
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.line}
	switch v := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for t.decoder.More() {
			child, err := t.node() // More and Token alternate keys and values
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err = t.decoder.Token()
		if err != nil {
			return nil, Problems{{Line: t.line, Text: "cannot be read as JSON: " + err.Error()}}
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// lineAt is the line, from 1, of the byte at an offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// notText is the offset of the first byte that is a control character or not
// UTF-8; -1: there is none.
func notText(data []byte) int {
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return i
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				return i
			}
			i += size
		}
	}
	return -1
}
