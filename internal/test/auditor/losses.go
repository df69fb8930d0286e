package auditor

// Losses is what a store has lost of what it had acknowledged.
type Losses struct {
	// Orders were taken by the shop, and the movements do not have their units.
	Orders int `json:"orders"`
	// Units are those of these orders.
	Units int64 `json:"units"`
	// SoldTwice are the units that the shop sold beyond the stock.
	SoldTwice int64 `json:"sold_twice"`
	// Free are the units that are on sale again although the shop has sold them.
	Free int64 `json:"free"`
}

// CountLosses compares the shop's orders with what the movements say.
func CountLosses(h *History, replayed map[string]*Replayed) (l Losses) {
	sold := map[string]map[string]int64{}
	for _, o := range h.Orders {
		b := replayed[o.Sale]
		if !o.Taken || o.Again || b == nil {
			continue
		}
		if sold[o.Sale] == nil {
			sold[o.Sale] = map[string]int64{}
		}
		for _, line := range o.Lines {
			sold[o.Sale][line.Cell()] += line.Qty
		}
		if state := b.States[o.JTI]; place(state) == "available" {
			l.Orders++
			l.Units += units(o.Lines)
		}
	}
	for sale, cells := range sold {
		for cell, n := range cells {
			over := n - h.Stock[sale][cell]
			l.SoldTwice += max(over, 0)
			if t := replayed[sale].Cells[cell]; t != nil {
				l.Free += max(min(n+t.Available-h.Stock[sale][cell], t.Available), 0)
			}
		}
	}
	return l
}
