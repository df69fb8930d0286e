package sale

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// ItemColumns are the columns that a file with items may have, in any order and case; sku is required, and stock too
// unless stock_from gives it.
var ItemColumns = []string{"sku", "stock", "region", "min", "max", "ids"}

// isItemsFile reports whether items names a file, which has them as CSV.
func isItemsFile(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && strings.EqualFold(filepath.Ext(n.Value), ".csv")
}

// readItems reads the file with the items.
func (d *document) readItems(found *findings, from *Sources) error {
	f := d.itemsFile
	d.items = field[[]itemEntry]{line: f.line, set: true, bad: true}
	if from == nil || from.Items == nil {
		found.add(f.line, "items", "is the name of a file, which `caddy stockgate sale apply` alone reads: apply the file with it")
		return nil
	}
	text, err := from.Items(f.val)
	if err != nil {
		return fmt.Errorf("line %d: items: %w", f.line, err)
	}
	rows := itemRows{found: found, source: filepath.Base(f.val), line: f.line, stockElsewhere: d.stockFrom.set}
	before := len(found.list)
	if items := rows.read(text); len(found.list) == before {
		d.items = field[[]itemEntry]{val: items, line: f.line, set: true}
	}
	return nil
}

// itemRows reads items from CSV, as spreadsheets write it.
type itemRows struct {
	found          *findings
	source         string
	line           int
	stockElsewhere bool
	skipped        int // lines before the names of the columns
}

func (t *itemRows) add(row int, format string, args ...any) {
	path := t.source
	if row > 0 {
		path = rowPath(t.source, row, "")
	}
	t.found.add(t.line, path, format, args...)
}

// read returns the items; what is wrong is among the findings.
func (t *itemRows) read(text []byte) []itemEntry {
	switch {
	case len(text) > MaxFile:
		t.add(0, "has more than %d MiB: split the sale", MaxFile>>20)
		return nil
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")):
		t.add(0, "is UTF-16: save it as CSV in UTF-8")
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if i := notText(text); i >= 0 {
		t.add(lineAt(text, i), "has the byte 0x%02x, which is no UTF-8 text: save the file as CSV in UTF-8", text[i])
		return nil
	}
	text, comma := t.separatorOf(text)
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = comma, -1, true, comma != '\t'
	head, err := r.Read()
	if err != nil {
		t.unreadable(err)
		return nil
	}
	at := t.columns(head, comma)
	if at == nil {
		return nil
	}
	return t.rows(r, at, len(head))
}

// rows reads what follows the names of the columns.
func (t *itemRows) rows(r *csv.Reader, at map[string]int, columns int) []itemEntry {
	items := newRowReader(t.found, t.source, t.line, at, 0)
	items.texts, items.units, items.stockElsewhere = csvText, csvUnits, t.stockElsewhere
	for n := 0; ; {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.unreadable(err)
			return nil
		}
		if !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" }) {
			continue
		}
		row, _ := r.FieldPos(0)
		row += t.skipped
		if n++; n > MaxItems {
			t.add(row, "is one more than the %d rows that there may be: split the sale", MaxItems)
			return nil
		}
		if len(fields) != columns {
			t.add(row, "has %d columns, and the first row names %d", len(fields), columns)
			continue
		}
		values := make([]any, columns)
		for i, f := range fields {
			if f = strings.TrimSpace(f); f != "" {
				values[i] = f
			}
		}
		items.row(row, values)
	}
	if len(items.list) == 0 && !t.found.any() {
		t.add(0, "has no rows: there would be nothing to sell")
	}
	return items.list
}

func (t *itemRows) unreadable(err error) {
	if errors.Is(err, io.EOF) {
		t.add(0, "is empty: its first row names the columns, such as sku,stock,max")
		return
	}
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		t.add(bad.Line+t.skipped, "cannot be read as CSV: %v", bad.Err)
		return
	}
	t.add(0, "cannot be read as CSV: %v", err)
}

// columns maps columns to positions; nil: one is missing or unknown.
func (t *itemRows) columns(head []string, comma rune) map[string]int {
	at := make(map[string]int, len(head))
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(name))
		switch _, twice := at[name]; {
		case twice:
			t.add(1+t.skipped, "names the column %s twice", name)
			return nil
		case name == "":
			t.add(1+t.skipped, "has no name for column %d: the first row names the columns, %s", i+1, either(ItemColumns))
			return nil
		case !slices.Contains(ItemColumns, name):
			meant := "known are " + strings.Join(ItemColumns, ", ")
			if near := nearest(name, ItemColumns); near != "" && len(name) > 2 {
				meant = "did you mean " + near + "?"
			}
			t.add(1+t.skipped, "names a column %s, which is unknown: %s; columns are separated by %q here", quote(name), meant, comma)
			return nil
		}
		at[name] = i
	}
	for _, name := range ItemColumns[:2] {
		if _, ok := at[name]; !ok && (name != "stock" || !t.stockElsewhere) {
			t.add(1+t.skipped, "has no column %s: the first row names the columns, such as sku,stock,max", name)
			return nil
		}
	}
	return at
}

// separatorOf returns what separates the columns, by the first row, and the text from there on: a row such as sep=;
// may come before it.
func (t *itemRows) separatorOf(text []byte) (rest []byte, comma rune) {
	head, below, _ := bytes.Cut(text, []byte("\n"))
	if sign, ok := bytes.CutPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("sep=")); ok && utf8.RuneCount(sign) == 1 && bytes.ContainsAny(sign, ",;|") {
		t.skipped = 1
		return below, rune(sign[0])
	}
	for _, sign := range []rune{';', '\t'} {
		if bytes.ContainsRune(head, sign) {
			return text, sign
		}
	}
	return text, ','
}

// madeANumber matches what spreadsheets make of a long number, such as a barcode.
var madeANumber = regexp.MustCompile(`^\d[.,]\d+[Ee]\+\d+$`)

func csvText(v any) (string, error) {
	text, _ := v.(string)
	switch {
	case v == nil:
		return "", errors.New("is empty")
	case madeANumber.MatchString(text):
		return "", fmt.Errorf("is %s, which a spreadsheet has made of a long number: format the column as text there, and enter it again", quote(text))
	}
	return text, nil
}

func csvUnits(v any) (int64, error) {
	text, _ := v.(string)
	if v == nil {
		return 0, errors.New("is empty: give a number of units")
	}
	switch {
	case len(text) > 1 && text[0] == '-' && onlyDigits(text[1:]):
		return 0, fmt.Errorf("must not be negative, got %s", quote(text))
	case !onlyDigits(text) || len(text) > 1 && text[0] == '0':
		return 0, fmt.Errorf("must be a whole number in plain digits such as 1000, not %s", quote(text))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		n = math.MaxInt64 // the bound of the column says what is too much
	}
	return n, nil
}
