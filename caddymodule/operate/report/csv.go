package report

import (
	"encoding/csv"
	"strconv"
	"strings"
	"time"
)

// csvHead are the columns of the CSV.
var csvHead = []string{"sku", "region", "stock", "available", "held", "in_doubt", "sold", "returned", "first_sale", "last_sale", "seconds_to_sell_out"}

// CSV returns all items of the sale as CSV (RFC 4180), with times in UTC. It leaves out what is not known.
func (r *Report) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(csvHead) // a builder takes everything
	for _, i := range r.Items() {
		returned, took := number(i.Returned), ""
		if r.Missing > 0 {
			returned = ""
		}
		if after, ok := i.SoldOutAfter(); ok {
			took = strconv.FormatFloat(after.Seconds(), 'f', 3, 64)
		}
		_ = w.Write([]string{
			plain(i.SKU), plain(i.Region), number(i.Stock), number(i.Available), number(i.Held), number(i.InDoubt), number(i.Confirmed), returned,
			instant(i.FirstSale), instant(i.LastSale), took,
		})
	}
	w.Flush()
	return b.String()
}

// plain returns a name that no spreadsheet takes for a formula: it reads the apostrophe as the mark of a text.
func plain(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
		return "'" + name
	}
	return name
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// instant writes a time in UTC; zero: nothing.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
