package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// maxItems bounds the items of one answer.
const maxItems = 200

// itemList answers GET items.
type itemList struct {
	Items   []itemRow `json:"items"`
	Matches int       `json:"matches"`
}

// serveItems finds items by a part of their SKU or region.
func serveItems(w http.ResponseWriter, r *http.Request, c *collector) error {
	query := r.URL.Query()
	limit := 50
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxItems {
			return answerError(w, http.StatusBadRequest, "limit must be 1 to "+strconv.Itoa(maxItems))
		}
	}
	id, sort := query.Get("sale"), query.Get("sort")
	if !sale.IsID(id) || sort != "" && itemOrders[sort] == nil || len(query.Get("q")) > 2*sale.MaxName {
		return answerError(w, http.StatusBadRequest, "sale must be the id of a sale, sort one of sku, available, held, in_doubt, sold")
	}
	s, _ := c.find(id)
	if s == nil {
		return answerError(w, http.StatusNotFound, "there is no such sale")
	}
	return answer(w, http.StatusOK, s.search(strings.ToLower(query.Get("q")), sort, limit))
}

// itemOrders compare two items.
var itemOrders = map[string]func(a, b *item) int{
	"sku": func(a, b *item) int {
		return cmp.Or(strings.Compare(a.SKU, b.SKU), strings.Compare(a.Region, b.Region))
	},
	"available": func(a, b *item) int { return cmp.Compare(a.Available, b.Available) },
	"held":      func(a, b *item) int { return cmp.Compare(b.Held, a.Held) },
	"in_doubt":  func(a, b *item) int { return cmp.Compare(b.InDoubt, a.InDoubt) },
	"sold":      func(a, b *item) int { return cmp.Compare(b.Confirmed, a.Confirmed) },
}

// search finds items that contain a text, in lower case. Without an order they are in that of
// the sale. Whatever the number of items, no more are sorted than are shown.
func (s *saleReader) search(text, order string, limit int) itemList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := itemList{Items: []itemRow{}}
	best := make([]*item, 0, limit+1)
	before := itemOrders[order]
	for _, i := range s.inOrder {
		if text != "" && !strings.Contains(i.key, text) {
			continue
		}
		list.Matches++
		at := len(best)
		if before != nil { // behind those that compare equal, which come earlier in the sale
			at, _ = slices.BinarySearchFunc(best, i, func(a, b *item) int { return cmp.Or(before(a, b), -1) })
		}
		if at < limit {
			best = slices.Insert(best, at, i)
			best = best[:min(len(best), limit)]
		}
	}
	for _, i := range best {
		list.Items = append(list.Items, rowOf(i))
	}
	return list
}
