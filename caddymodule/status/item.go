package status

import (
	"math"
	"net/http"
	"net/url"
	"slices"
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
	offers, ok := offersIn(listing.Sale, item, r.URL.Query().Get("region"))
	if !ok {
		return unknownItem(w)
	}

	now := listing.Now()
	state := closedState(listing.Sale.RefusalAt(listing.Status, now))
	if state == "" {
		cache := overviewcache.Of(&s.cache, d, cacheOptions)
		overview, err := cache.Recent(r.Context(), saleID)
		if err != nil {
			return s.unavailable(w, err)
		}
		if state = stockState(item, offers, overview); state == "" {
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

// offersIn returns an item's offers, or the one in a region; false: it has none there.
func offersIn(s *sale.Sale, item *sale.Item, region string) ([]sale.Offer, bool) {
	all := s.Offers(item)
	if region != "" && all[0].Region != "" {
		all = slices.DeleteFunc(all, func(o sale.Offer) bool { return o.Region != region })
	}
	return all, len(all) > 0
}

// stockStates are the states of a cell, the best first.
var stockStates = []string{"on_sale", "low", "all_held", "sold_out"}

// stockState returns the best state of an item's offers; empty: the overview has none of them.
func stockState(item *sale.Item, offers []sale.Offer, s *overviewcache.Cached) string {
	least, _ := item.Bounds()
	best := len(stockStates)
	for i := range offers {
		known := true
		available := offers[i].Of(func(cell string) int64 {
			c, ok := s.Cells[cell]
			known = known && ok
			return c.Available
		})
		if !known {
			continue
		}
		stock := offers[i].Of(func(cell string) int64 { return s.Cells[cell].Stock })
		left := offers[i].Of(func(cell string) int64 { c := s.Cells[cell]; return c.Available + c.Held + c.InDoubt })
		state := 0
		switch {
		case left < least:
			state = 3
		case available < least:
			state = 2
		case available*10 < stock:
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
