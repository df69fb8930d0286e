package token

import (
	"fmt"
)

// cell is the stock cell that a line draws on.
type cell struct{ sku, region string }

// compareLines reports [ErrLines] unless the order takes exactly what is held.
func compareLines(held, order []Line) error {
	left := make(map[cell]int64, len(held))
	for _, l := range held {
		left[cell{l.SKU, l.Region}] += l.Quantity // at most MaxSize bytes of lines: no overflow
	}
	for i, l := range order {
		c := cell{l.SKU, l.Region}
		if _, regional := left[c]; !regional {
			c.region = "" // stock without regions matches any region
		}
		n, ok := left[c]
		switch {
		case !ok:
			return fmt.Errorf("%w: the token holds nothing for line %d of the order (%q, region %q)", ErrLines, i+1, short(l.SKU), short(l.Region))
		case l.Quantity < 1:
			return fmt.Errorf("%w: line %d of the order has quantity %d", ErrLines, i+1, l.Quantity)
		case l.Quantity > n:
			return fmt.Errorf("%w: the order takes more of %q than the token holds", ErrLines, short(l.SKU))
		}
		left[c] = n - l.Quantity
	}
	for c, n := range left {
		if n != 0 {
			return fmt.Errorf("%w: the token holds %d of %q that the order does not take", ErrLines, n, short(c.sku))
		}
	}
	return nil
}
