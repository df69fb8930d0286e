package record

import (
	"errors"
	"strconv"
	"strings"
)

// Cell is the stock of one item, per region where the item has regions.
type Cell struct {
	SKU       string `json:"sku"`
	Region    string `json:"region,omitempty"`
	Stock     int64  `json:"stock"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	InDoubt   int64  `json:"in_doubt"`
	Confirmed int64  `json:"confirmed"`
}

// Balanced reports whether the columns of the cell add up.
func (c Cell) Balanced() bool {
	return c.Stock == c.Available+c.Held+c.InDoubt+c.Confirmed &&
		c.Available >= 0 && c.Held >= 0 && c.InDoubt >= 0 && c.Confirmed >= 0
}

// ParseCell reads a cell as it is stored.
func ParseCell(packed string) (Cell, error) {
	var n [5]int64
	for i := range n {
		word, rest, more := strings.Cut(packed, " ")
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil || more != (i < len(n)-1) {
			return Cell{}, errors.New("its numbers cannot be read")
		}
		n[i], packed = v, rest
	}
	return Cell{Stock: n[0], Available: n[1], Held: n[2], InDoubt: n[3], Confirmed: n[4]}, nil
}

func (c *Cell) Add(other Cell) {
	c.Stock += other.Stock
	c.Available += other.Available
	c.Held += other.Held
	c.InDoubt += other.InDoubt
	c.Confirmed += other.Confirmed
}
