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

// maxLines bounds the lines of a recorded cart.
const maxLines = 50

func (l *learner) linesOfCart(r *recipe.Recipe, list []any) (lines []itemLine) {
	if len(list) > maxLines {
		return nil
	}
	skus := l.skusOf()
	for _, e := range list {
		var line itemLine
		line.ID, _ = scalar(at(e, r.Cart.ID))
		line.SKU, _ = scalar(at(e, r.Cart.SKU))
		line.Quantity = units(at(e, r.Cart.Quantity))
		if line.SKU == "" {
			line.SKU = skus[line.ID]
		}
		if line.SKU == "" || line.Quantity == 0 {
			return nil
		}
		lines = append(lines, line)
	}
	return lines
}

// skusOf maps ids to the SKU that an object beside them has, in all answers; to nothing where objects with one id have
// several.
func (l *learner) skusOf() map[string]string {
	found := make(map[string]string)
	for _, x := range l.fromShop() {
		if !strings.Contains(string(x.Answer), `"sku"`) {
			continue
		}
		walk(x.answerTree(), nil, func(_ []string, v any) bool {
			object, _ := v.(map[string]any)
			sku, _ := object["sku"].(string)
			id, _ := scalar(object["id"])
			if sku == "" || id == "" {
				return true
			}
			if other, known := found[id]; known && other != sku {
				sku = ""
			}
			found[id] = sku
			return true
		})
	}
	return found
}
