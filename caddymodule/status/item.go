package status

import (
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// itemPath reads /sales/{id}/items/{sku}; a SKU may hold any character, percent-encoded.
func itemPath(escaped string) (saleID, sku string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, "/sales/")
	if !ok {
		return "", "", false
	}
	saleID, sku, ok = strings.Cut(rest, "/items/")
	if !ok || saleID == "" || sku == "" || strings.Contains(saleID, "/") || strings.Contains(sku, "/") {
		return "", "", false
	}
	sku, err := url.PathUnescape(sku)
	return saleID, sku, err == nil
}

// cacheOptions cache every cell, because buyers may ask for any.
var cacheOptions = overviewcache.Options{Most: math.MaxInt, Longest: 5 * time.Second}

// itemState is the public answer about an item.
type itemState struct {
	State      string `json:"state"`
	ServerTime string `json:"server_time"`
	StartsAt   string `json:"starts_at"`
}

func (s *Status) serveItem(w http.ResponseWriter, r *http.Request, d *edgeruntime.Runtime, saleID, sku string) error {
	if err := d.Ready(); err != nil {
		return s.unavailable(w, err) // a sale that is not in the catalogue yet may exist
	}
	listing, ok := d.Catalogue().Sale(saleID)
	if ok && listing.Lost() {
		return s.unavailable(w, &edge.LostError{Sale: saleID})
	}
	if !ok || listing.Status == sale.Draft {
		return unknownItem(w)
	}
	item, ok := listing.Sale.Item(sku)
	if !ok {
		return unknownItem(w)
	}
	cells := item.Cells()
	if region := r.URL.Query().Get("region"); region != "" && len(item.Regions) > 0 {
		if _, ok := item.Regions[region]; !ok {
			return unknownItem(w)
		}
		cells = []string{sale.Cell(sku, region)}
	}

	now := listing.Now()
	state := closedState(listing.Sale.RefusalAt(listing.Status, now))
	if state == "" {
		cache := overviewcache.Of(&s.cache, d, cacheOptions)
		overview, err := cache.Recent(r.Context(), saleID)
		if err != nil {
			return s.unavailable(w, err)
		}
		if state = stockState(item, cells, overview); state == "" {
			cache.Again(saleID) // the item is newer than the overview
			return s.unavailable(w, overviewcache.ErrOld)
		}
	}
	return answerStatus(w, http.StatusOK, "public, max-age=1", itemState{state, stamp(now), stamp(listing.Sale.StartsAt)})
}

// closedState returns the state of a sale that does not sell; empty: it does.
func closedState(verdict *sale.Refusal) string {
	if verdict == nil {
		return ""
	}
	switch verdict.Reason {
	case sale.NotStarted:
		return "not_started"
	case sale.PausedSale:
		return "paused"
	}
	return "ended"
}

// stockStates are the states of a cell, the best first.
var stockStates = []string{"on_sale", "low", "all_held", "sold_out"}

// stockState returns the best state of an item's cells; empty: the overview has none of them.
func stockState(item *sale.Item, cells []string, s *overviewcache.Cached) string {
	least, _ := item.Bounds()
	best := len(stockStates)
	for _, cell := range cells {
		c, ok := s.Cells[cell]
		if !ok {
			continue
		}
		state := 0
		switch {
		case c.Available+c.Held+c.InDoubt < least:
			state = 3
		case c.Available < least:
			state = 2
		case c.Available*10 < c.Stock:
			state = 1
		}
		best = min(best, state)
	}
	if best == len(stockStates) {
		return ""
	}
	return stockStates[best]
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func unknownItem(w http.ResponseWriter) error {
	return answerStatus(w, http.StatusNotFound, "public, max-age=1", statusError{"no such item is on sale"})
}
