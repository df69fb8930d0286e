package auditor

// Hoarding is an attack on sales by buyers who hold what is free and never pay.
type Hoarding struct {
	// Fakes are the buyers who never pay.
	Fakes map[string]bool
	// Sales are those of which honest buyers must get half of the units. At least as
	// many honest buyers ask for one.
	Sales []string
	// Controls are sales without a bound on unpaid holds, under the same attack: honest
	// buyers must get less, or the attack is too weak to show anything.
	Controls []string
}

// judgeHoarding: honest buyers get at least half of what is sold under hoarders.
func judgeHoarding(h *History, _ map[string]*Replayed) (found []Violation) {
	bought := map[string]int64{}
	for _, o := range h.Orders {
		if !o.Taken || o.Again {
			continue
		}
		if h.Hoarding.Fakes[o.Buyer] {
			found = append(found, broken(Control, "buyer %s, who never pays, has an order", o.Buyer).with(o))
			continue
		}
		bought[o.Sale] += units(o.Lines)
	}
	for _, sale := range h.Hoarding.Sales {
		if stock := h.loaded(sale); 2*bought[sale] < stock {
			found = append(found, broken(HalfForHonest, "honest buyers have %d of %d units of sale %s", bought[sale], stock, sale))
		}
	}
	for _, sale := range h.Hoarding.Controls {
		if stock := h.loaded(sale); 2*bought[sale] >= stock {
			found = append(found, broken(Control, "honest buyers have %d of %d units of sale %s, which has no bound on unpaid holds", bought[sale], stock, sale))
		}
	}
	return limited(found)
}

// loaded is how many units of a sale operators have put on sale.
func (h *History) loaded(sale string) (n int64) {
	for _, units := range h.Stock[sale] {
		n += units
	}
	return n
}
