package stampede

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
)

// Basket is one order: what a buyer wants, all or nothing.
type Basket struct {
	// Lines are what is bought. Their regions must be the same.
	Lines []sale.Line
}

// Buy makes a basket of one item.
func Buy(sku string, quantity int64) Basket {
	return Basket{Lines: []sale.Line{{SKU: sku, Quantity: quantity}}}
}

func (b *Basket) check() error {
	if len(b.Lines) == 0 {
		return errors.New("it has no lines")
	}
	for _, l := range b.Lines {
		if l.SKU == "" {
			return errors.New("a line names no sku")
		}
		// Less than 1 is allowed: it must be refused, which is worth trying.
		if l.Region != b.Lines[0].Region {
			return fmt.Errorf("its lines name the regions %q and %q: an order goes to one", b.Lines[0].Region, l.Region)
		}
	}
	return nil
}

// body is the order as JSON: sku and quantity, or for several lines an array
// items of sku and count; and the region, if there is one.
func (b *Basket) body() ([]byte, error) {
	type item struct {
		SKU   string `json:"sku"`
		Count int64  `json:"count"`
	}
	var order struct {
		SKU      string `json:"sku,omitempty"`
		Quantity *int64 `json:"quantity,omitempty"`
		Items    []item `json:"items,omitempty"`
		Region   string `json:"region,omitempty"`
	}
	order.Region = b.Lines[0].Region
	if len(b.Lines) == 1 {
		order.SKU, order.Quantity = b.Lines[0].SKU, &b.Lines[0].Quantity
	} else {
		for _, l := range b.Lines {
			order.Items = append(order.Items, item{l.SKU, l.Quantity})
		}
	}
	return json.Marshal(order)
}
