package sale

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Parse reads one sale from YAML or JSON. It is strict: anything ambiguous (an unknown or
// repeated field, a second document, an anchor, a time without a zone, 1_000 for 1000) is
// an error. A SKU, a region or an id without quotes is read as text: 020 is not 16. The
// error is Problems and lists everything that is wrong, with field and line.
func Parse(data []byte) (*Sale, error) {
	return parse(data, syntaxTree, nil)
}

// Decode reads a sale from the JSON that json.Marshal made of one. It is as strict as
// Parse, and accepts only JSON.
func Decode(data []byte) (*Sale, error) {
	return parse(data, jsonTree, nil)
}

// New makes a sale from a Go value: a checked copy with its defaults filled in. The
// error is Problems.
func New(s Sale) (*Sale, error) {
	d := describe(&s)
	var found findings
	d.check(&found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return d.build(), nil
}

// Validate says what is wrong with a sale that was not parsed. It changes nothing; New
// returns a copy with the defaults filled in. The error is Problems, without lines.
func (s *Sale) Validate() error {
	var found findings
	describe(s).check(&found)
	return found.err()
}

// parse reads a sale. Without sources, a file that takes its stock from elsewhere is an error.
func parse(data []byte, tree func([]byte) (*yaml.Node, error), from *Sources) (*Sale, error) {
	if len(data) > MaxFile {
		return nil, Problems{{Text: fmt.Sprintf("the file has more than %d MiB: split the sale", MaxFile>>20)}}
	}
	if i := notText(data); i >= 0 {
		return nil, Problems{{Line: lineAt(data, i), Text: fmt.Sprintf("the byte 0x%02x is not UTF-8 text: save the file as UTF-8", data[i])}}
	}
	root, err := tree(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	r := reader{}
	if r.refuseReferences(root); r.any() {
		return nil, r.err()
	}
	if root.Kind != yaml.MappingNode {
		r.add(root.Line, "", "a sale is a mapping with id, starts_at, ends_at and items, not %s", form(root))
		return nil, r.err()
	}
	d := r.document(root)
	if d.itemsFile.set {
		if err := d.readItems(&r.findings, from); err != nil {
			return nil, err
		}
	}
	d.check(&r.findings)
	if d.stockFrom.set && from == nil {
		r.add(d.stockFrom.line, "stock_from", "is filled in by `caddy stockgate sale apply`, which alone asks the shop's database: apply the file with it")
	}
	if d.boughtFrom.set && from == nil {
		r.add(d.boughtFrom.line, "bought_from", "is filled in by `caddy stockgate sale apply`, which alone asks the shop's Redis or database: apply the file with it")
	}
	if (d.stockFrom.set || d.boughtFrom.set) && !r.any() {
		if err := d.fill(&r.findings, from); err != nil {
			return nil, err
		}
		if !r.any() {
			d.check(&r.findings)
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return d.build(), nil
}
