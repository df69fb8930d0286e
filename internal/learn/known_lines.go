package learn

import (
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/recipe"
)

// knownLines finds the last cart before the order, as a known shop shows it; nil: there is none, or an SKU of it
// is in no answer.
func (l *learner) knownLines(r *recipe.Recipe) *linesFrom {
	for _, x := range slices.Backward(l.fromShop()) {
		if x.Entry >= l.order.Entry || x.Status != 200 {
			continue
		}
		var lines []itemLine
		walk(x.answerTree(), nil, func(path []string, v any) bool {
			if list, ok := v.([]any); ok && len(path) > 0 && path[len(path)-1] == r.Cart.Lines && lines == nil {
				lines = l.linesOfCart(r, list)
			}
			return lines == nil
		})
		if lines != nil {
			if !l.canWrite(lines) {
				return nil
			}
			return &linesFrom{lines: lines}
		}
	}
	return nil
}

func (l *learner) linesOfCart(r *recipe.Recipe, list []any) (lines []itemLine) {
	if len(list) > 50 {
		return nil
	}
	for _, e := range list {
		var line itemLine
		line.ID, _ = scalar(at(e, r.Cart.ID))
		line.SKU, _ = scalar(at(e, r.Cart.SKU))
		line.Quantity = units(at(e, r.Cart.Quantity))
		if line.SKU == "" {
			line.SKU = l.skuOf(line.ID)
		}
		if line.SKU == "" || line.Quantity == 0 {
			return nil
		}
		lines = append(lines, line)
	}
	return lines
}

// skuOf finds an object that has this id and an SKU, in all answers; empty: none, or several with other SKUs.
func (l *learner) skuOf(id string) string {
	found := make(map[string]bool)
	for _, x := range l.fromShop() {
		if id == "" || !strings.Contains(string(x.Answer), id) {
			continue
		}
		walk(x.answerTree(), nil, func(_ []string, v any) bool {
			object, _ := v.(map[string]any)
			sku, _ := object["sku"].(string)
			if own, _ := scalar(object["id"]); own == id && sku != "" {
				found[sku] = true
			}
			return true
		})
	}
	if len(found) == 1 {
		for sku := range found {
			return sku
		}
	}
	return ""
}
