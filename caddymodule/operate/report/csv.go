package report

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// csvHead are the columns of the CSV.
var csvHead = []string{"sku", "region", "stock", "available", "held", "in_doubt", "sold", "returned", "first_sale", "last_sale", "seconds_to_sell_out"}

// csvWaits are the columns that follow where people have waited.
var csvWaits = []string{"entered", "offers", "offers_accepted", "offers_lapsed", "left"}

// CSV returns all items of the sale as CSV (RFC 4180), with times in UTC. It leaves out what is not known.
func (r *Report) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	head := csvHead
	if r.waits.some {
		head = slices.Concat(csvHead, csvWaits)
	}
	_ = w.Write(head) // a builder takes everything
	for _, i := range r.Items() {
		returned, took := number(i.Returned), ""
		if r.Missing > 0 {
			returned = ""
		}
		if after, ok := i.SoldOutAfter(); ok {
			took = strconv.FormatFloat(after.Seconds(), 'f', 3, 64)
		}
		row := []string{
			plain(i.SKU), plain(i.Region), number(i.Stock), number(i.Available), number(i.Held), number(i.InDoubt), number(i.Confirmed), returned,
			instant(i.FirstSale), instant(i.LastSale), took,
		}
		if r.waits.some {
			row = append(row, r.waitColumns(i.Name)...)
		}
		_ = w.Write(row)
	}
	w.Flush()
	return b.String()
}

// waitColumns are the values of csvWaits of an item. Where movements are missing they are not known.
func (r *Report) waitColumns(name string) []string {
	if r.Missing > 0 {
		return make([]string, len(csvWaits))
	}
	s := r.waits.of(name)
	return []string{number(s.Entered), number(s.Offers), number(s.Accepted), number(s.Lapsed), number(s.Left)}
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
