package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/stockgate/stockgate/internal/sale"
)

// readLines returns what a request orders: from a JSON body, a form, or the
// query of a request without a body.
func readLines(w http.ResponseWriter, r *http.Request) ([]sale.Line, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if len(body) == 0 {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return nil, errors.New("the query is malformed")
		}
		return linesOfValues(values)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, errors.New("the Content-Type is missing or malformed")
	}
	switch kind {
	case "application/json":
		return linesOfJSON(body)
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, errors.New("the form is malformed")
		}
		return linesOfValues(values)
	default:
		return nil, errors.New("send application/json or application/x-www-form-urlencoded")
	}
}

func linesOfValues(values url.Values) ([]sale.Line, error) {
	quantity := int64(1)
	if values.Has("quantity") {
		var err error
		if quantity, err = parseQuantity(values.Get("quantity")); err != nil {
			return nil, err
		}
	}
	return checkLines([]sale.Line{{SKU: values.Get("sku"), Quantity: quantity, Region: values.Get("region")}})
}

func linesOfJSON(body []byte) ([]sale.Line, error) {
	var order struct {
		SKU      *literal `json:"sku"`
		Quantity *literal `json:"quantity"`
		Region   string   `json:"region"`
		Items    []struct {
			SKU   *literal `json:"sku"`
			Count *literal `json:"count"`
		} `json:"items"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&order); err != nil {
		return nil, errors.New("the JSON is malformed")
	}
	if order.SKU != nil && order.Items != nil {
		return nil, errors.New("give sku or items, not both")
	}
	if order.Items == nil {
		line, err := newLine(order.SKU, order.Quantity, order.Region)
		if err != nil {
			return nil, err
		}
		return checkLines([]sale.Line{line})
	}
	lines := make([]sale.Line, 0, len(order.Items))
	for _, item := range order.Items {
		line, err := newLine(item.SKU, item.Count, order.Region)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return checkLines(lines)
}

func newLine(sku, quantity *literal, region string) (sale.Line, error) {
	line := sale.Line{Quantity: 1, Region: region}
	if sku != nil {
		line.SKU = string(*sku)
	}
	if quantity != nil {
		var err error
		if line.Quantity, err = parseQuantity(string(*quantity)); err != nil {
			return sale.Line{}, err
		}
	}
	return line, nil
}

func checkLines(lines []sale.Line) ([]sale.Line, error) {
	if len(lines) == 0 || len(lines) > sale.MaxLines {
		return nil, fmt.Errorf("an order has 1 to %d lines", sale.MaxLines)
	}
	for _, line := range lines {
		if line.SKU == "" || len(line.SKU) > sale.MaxName || len(line.Region) > sale.MaxName {
			return nil, errors.New("a line has no sku, or a name is too long")
		}
	}
	return lines, nil
}

var quantityForm = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)

func parseQuantity(s string) (int64, error) {
	if !quantityForm.MatchString(s) {
		return 0, errors.New("the quantity is not a whole number from 1 to 99999")
	}
	return strconv.ParseInt(s, 10, 64)
}

// literal is a JSON string or an integer as it is written: 20002001 and
// "20002001" are the same SKU.
type literal string

var integerForm = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// UnmarshalJSON reads a string or an integer.
func (l *literal) UnmarshalJSON(raw []byte) error {
	if integerForm.Match(raw) {
		*l = literal(raw)
		return nil
	}
	if raw[0] != '"' {
		return errors.New("neither a string nor an integer")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*l = literal(s)
	return nil
}
