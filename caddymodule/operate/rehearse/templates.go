package rehearse

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/internal/saved"
)

// mostTemplate bounds a file with a request, mostData one with data, in bytes.
const (
	mostTemplate = 1 << 20
	mostData     = 256 << 20
)

// Columns that every buyer has, also without a file of data.
const (
	columnBuyer  = "buyer"  // a name that is new in each run
	columnNumber = "number" // 1, 2, 3, …
	columnKey    = "key"    // of one purchase, for an idempotency key
)

// placeholder is {{column}}.
var placeholder = regexp.MustCompile(`\{\{ *([\pL\pN_.-]+) *\}\}`)

// templates are an operator's requests, which buyers send in turn, and the data of the buyers.
type templates struct {
	hosts   hosts
	files   []template
	columns map[string]int
	rows    [][]string
	run     string // begins the names and keys of this run
	named   bool   // the requests say who buys, as {{buyer}}
}

// template is one saved request.
type template struct {
	name string
	text string
}

// readTemplates reads the requests and the data; data "": none.
func readTemplates(h hosts, files []string, data string) (*templates, error) {
	t := &templates{hosts: h, run: "rehearsal-" + strings.ToLower(rand.Text()[:8]) + "-"}
	if len(files) == 0 {
		return nil, errors.New("which request do the buyers send? Name a file such as order.http, as 'caddy stockgate try' reads it")
	}
	if data != "" {
		if err := t.readData(data); err != nil {
			return nil, fmt.Errorf("%s: %w", data, err)
		}
	}
	for _, file := range files {
		text, err := readBounded(file, mostTemplate)
		if err != nil {
			return nil, err
		}
		for _, m := range placeholder.FindAllSubmatch(text, -1) {
			if _, known := t.value(0, string(m[1])); !known {
				return nil, fmt.Errorf("%s: there is no column %s; there are %s", file, m[0], strings.Join(t.names(), ", "))
			}
			t.named = t.named || string(m[1]) == columnBuyer
		}
		t.files = append(t.files, template{file, string(text)})
	}
	return t, nil
}

// readBounded reads a file of at most so many bytes.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return text, err
}

func (t *templates) readData(name string) error {
	text, err := readBounded(name, mostData)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff")))).ReadAll()
	if err != nil {
		return err
	}
	if len(rows) < 2 {
		return errors.New("it needs a line with the names of the columns, and a line for each buyer")
	}
	t.columns, t.rows = map[string]int{}, rows[1:]
	for i, column := range rows[0] {
		column = strings.TrimSpace(column)
		if _, twice := t.columns[column]; twice {
			return fmt.Errorf("it has two columns %q", column)
		}
		t.columns[column] = i
	}
	return nil
}

// value is what a buyer has in a column.
func (t *templates) value(buyer int, column string) (string, bool) {
	if at, ok := t.columns[column]; ok {
		return t.rows[buyer%len(t.rows)][at], true
	}
	switch column {
	case columnBuyer, columnKey:
		return t.run + strconv.Itoa(buyer+1), true
	case columnNumber:
		return strconv.Itoa(buyer + 1), true
	}
	return "", false
}

// names are the columns there are.
func (t *templates) names() []string {
	all := append([]string{columnBuyer, columnNumber, columnKey}, slices.Collect(maps.Keys(t.columns))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Name is what the shop calls a buyer, where the requests or the data say it.
func (t *templates) Name(buyer int) string {
	if _, ok := t.columns[columnBuyer]; !ok && !t.named {
		return ""
	}
	name, _ := t.value(buyer, columnBuyer)
	return name
}

// Request makes the request of a buyer.
func (t *templates) Request(buyer int) (*http.Request, error) {
	from := t.files[buyer%len(t.files)]
	r, err := t.fill(from.text, buyer)
	if err != nil {
		return nil, fmt.Errorf("%s, as buyer %d sends it: %w", from.name, buyer+1, err)
	}
	return r, nil
}

// connectionHeaders are about the connection on which the request was saved.
var connectionHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Content-Length", "Accept-Encoding", "Te", "Upgrade"}

func (t *templates) fill(text string, buyer int) (*http.Request, error) {
	head, _, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n")
	for _, m := range placeholder.FindAllStringSubmatch(head, -1) {
		if v, _ := t.value(buyer, m[1]); strings.ContainsAny(v, "\r\n") {
			return nil, fmt.Errorf("{{%s}} stands in a header, and its value has a line end", m[1])
		}
	}
	filled := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		v, _ := t.value(buyer, placeholder.FindStringSubmatch(found)[1])
		return v
	})
	r, body, err := saved.Request([]byte(filled))
	if err != nil {
		return nil, err
	}
	to, err := t.hosts.url(r.Host)
	if err != nil {
		return nil, err
	}
	to.Path, to.RawPath, to.RawQuery = r.URL.Path, r.URL.RawPath, r.URL.RawQuery
	for _, name := range connectionHeaders {
		r.Header.Del(name)
	}
	return &http.Request{
		Method: r.Method, URL: to, Host: r.Host, Header: r.Header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}, nil
}

// check makes the request of every buyer once, so that a mistake in the last row is found
// before the first request is sent.
func (t *templates) check(buyers int) error {
	if t.rows != nil && buyers > len(t.rows) {
		return fmt.Errorf("there are %d buyers, and the data has %d rows: each buyer needs one", buyers, len(t.rows))
	}
	for buyer := range buyers {
		if _, err := t.Request(buyer); err != nil {
			return err
		}
	}
	return nil
}
