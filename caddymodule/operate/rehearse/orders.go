package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/stampede"
)

const (
	// ordersTimeout bounds the answer of a URL with the shop's orders.
	ordersTimeout = time.Minute
	// mostOrders bounds the list, in bytes.
	mostOrders = 256 << 20
)

// listedOrder is an order as a shop lists it: with lines, with one item, or with neither.
type listedOrder struct {
	OrderNo     loose       `json:"order_no"`
	Reservation loose       `json:"reservation"`
	Ref         loose       `json:"ref"`
	Buyer       loose       `json:"buyer"`
	Lines       []sale.Line `json:"lines"`
	SKU         loose       `json:"sku"`
	Quantity    loose       `json:"quantity"`
	Region      loose       `json:"region"`
}

// loose is a JSON string or number.
type loose string

func (l *loose) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil {
		if text != nil {
			*l = loose(*text)
		}
		return nil
	}
	var number json.Number
	err := json.Unmarshal(raw, &number)
	*l = loose(number)
	return err
}

func isURL(from string) bool {
	return strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://")
}

// checkOrders reads a file of orders before a crowd is sent. What can be read only once, such
// as a pipe, has to wait for the crowd, and so has a URL for its context.
func checkOrders(from string) error {
	if from == "" || isURL(from) {
		return nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() || info.IsDir() {
		_, err = listOrders(context.Background(), from)
	}
	return err
}

// listOrders returns the orders in a file or at a URL, which the operator names.
func listOrders(ctx context.Context, from string) ([]stampede.Order, error) {
	read := func() (io.ReadCloser, error) { return os.Open(from) }
	if isURL(from) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, ordersTimeout)
		defer cancel()
		read = func() (io.ReadCloser, error) { return ask(ctx, from) }
	}
	in, err := read()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, mostOrders+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", from, err)
	case len(text) > mostOrders:
		return nil, fmt.Errorf("%s is larger than %d bytes", from, mostOrders)
	}
	orders, err := parseOrders(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return orders, nil
}

// ask gets the orders at a URL. It follows no redirect.
func ask(ctx context.Context, from string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", from, response.Status)
	}
	return response.Body, nil
}

// parseOrders reads a JSON array, JSON lines, or CSV with the names of the columns in its
// first line.
func parseOrders(text []byte) (orders []stampede.Order, err error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	var all []listedOrder
	switch {
	case len(text) == 0:
	case text[0] == '[':
		err = json.Unmarshal(text, &all)
	case text[0] == '{':
		for dec := json.NewDecoder(bytes.NewReader(text)); err == nil; {
			var o listedOrder
			if err = dec.Decode(&o); err == nil {
				all = append(all, o)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	default:
		all, err = parseRows(text)
	}
	if err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(o listedOrder) bool { return o.Reservation != "" || o.Ref != "" || len(o.Lines) > 0 || o.SKU != "" }) {
		err = errors.New("no order in it has a reservation, a ref, lines or an sku: write a list of objects, or CSV, with these names")
	}
	for i := range all {
		if err != nil {
			break
		}
		var o stampede.Order
		if o, err = all[i].order(i + 1); err == nil {
			orders = append(orders, o)
		}
	}
	return orders, err
}

func parseRows(text []byte) ([]listedOrder, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	all := make([]listedOrder, len(rows)-1)
	known := false
	for at, column := range rows[0] {
		column = strings.ToLower(strings.TrimSpace(column))
		known = known || column == "reservation" || column == "ref"
		for i := range all {
			o := &all[i]
			field := map[string]*loose{"order_no": &o.OrderNo, "reservation": &o.Reservation, "ref": &o.Ref, "buyer": &o.Buyer,
				"sku": &o.SKU, "quantity": &o.Quantity, "region": &o.Region}[column]
			if field != nil {
				*field = loose(strings.TrimSpace(rows[i+1][at]))
			}
		}
	}
	if !known {
		return nil, fmt.Errorf("it has no column reservation or ref; its first line has %q", rows[0])
	}
	return all, nil
}

// order is the order as the oracle takes it.
func (o *listedOrder) order(number int) (stampede.Order, error) {
	out := stampede.Order{OrderNo: string(o.OrderNo), Reservation: string(o.Reservation), Ref: string(o.Ref), Buyer: string(o.Buyer), Lines: o.Lines}
	if out.OrderNo == "" {
		out.OrderNo = "number " + strconv.Itoa(number)
	}
	if o.SKU == "" {
		return out, nil
	}
	quantity := int64(1)
	if o.Quantity != "" {
		var err error
		if quantity, err = strconv.ParseInt(string(o.Quantity), 10, 64); err != nil {
			return out, fmt.Errorf("order %s: the quantity %.40q is no whole number", out.OrderNo, o.Quantity)
		}
	}
	out.Lines = append(out.Lines, sale.Line{SKU: string(o.SKU), Quantity: quantity, Region: string(o.Region)})
	return out, nil
}

// readAnswers reads what the buyers of another load test were told, a JSON object a line.
func readAnswers(name string) (*stampede.Tally, error) {
	text, err := readBounded(name, mostData)
	if err != nil {
		return nil, err
	}
	t := &stampede.Tally{Refused: map[string]int{}, Statuses: map[int]int{}, Failed: map[string]int{}, TurnedAway: map[string]bool{}}
	for line, raw := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		read := struct {
			stampede.Answer
			Status *int `json:"status"`
		}{}
		err := json.Unmarshal(raw, &read)
		if err == nil && read.Status == nil {
			err = errors.New("it has no status")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: it is no answer, such as {\"status\":201,\"reservation\":\"…\"}: %w", name, line+1, err)
		}
		a := read.Answer
		if a.Status = *read.Status; a.Status == 0 {
			a.Failure = cmp.Or(a.Failure, "other")
			t.Failed[a.Failure]++
		} else {
			t.Statuses[a.Status]++
		}
		if a.Accepted = a.Status/100 == 2; a.Accepted {
			t.Accepted++
		}
		t.Requests++
		t.Answers = append(t.Answers, a)
	}
	if t.Requests == 0 {
		return nil, fmt.Errorf("%s:1: there is no answer in it: write one a line, such as {\"status\":201,\"reservation\":\"…\"}", name)
	}
	return t, nil
}
