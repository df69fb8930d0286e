package token

import (
	"fmt"

	"github.com/stockgate/stockgate/sale"
)

// cell is the stock cell that a line draws on.
type cell struct{ sku, region string }

// compareLines reports [ErrLines] unless the order has exactly the held lines.
func compareLines(held, order []sale.Line) error {
	left := make(map[cell]int64, len(held))
	for _, line := range held {
		left[cell{line.SKU, line.Region}] += line.Quantity // at most MaxSize bytes of lines: no overflow
	}
	for i, line := range order {
		c := cell{line.SKU, line.Region}
		if _, regional := left[c]; !regional {
			c.region = "" // stock without regions matches any region
		}
		n, ok := left[c]
		switch {
		case !ok:
			return fmt.Errorf("%w: the token holds nothing for line %d of the order (%q, region %q)", ErrLines, i+1, short(line.SKU), short(line.Region))
		case line.Quantity < 1:
			return fmt.Errorf("%w: line %d of the order has quantity %d", ErrLines, i+1, line.Quantity)
		case line.Quantity > n:
			return fmt.Errorf("%w: the order takes more of %q than the token holds", ErrLines, short(line.SKU))
		}
		left[c] = n - line.Quantity
	}
	for c, n := range left {
		if n != 0 {
			return fmt.Errorf("%w: the token holds %d of %q that the order does not take", ErrLines, n, short(c.sku))
		}
	}
	return nil
}
