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
	for _, o := range h.Orders {
		if o.Taken && !o.Again && h.Hoarding.Fakes[o.Buyer] {
			found = append(found, broken(Control, "buyer %s, who never pays, has an order", o.Buyer).with(o))
		}
	}
	for _, sale := range h.Hoarding.Sales {
		if bought, stock := h.BoughtHonestly(sale); 2*bought < stock {
			found = append(found, broken(HalfForHonest, "honest buyers have %d of %d units of sale %s", bought, stock, sale))
		}
	}
	for _, sale := range h.Hoarding.Controls {
		if bought, stock := h.BoughtHonestly(sale); 2*bought >= stock {
			found = append(found, broken(Control, "honest buyers have %d of %d units of sale %s, which has no bound on unpaid holds", bought, stock, sale))
		}
	}
	return limited(found)
}

// BoughtHonestly is how many units of a sale honest buyers have, of so many on sale.
func (h *History) BoughtHonestly(sale string) (bought, stock int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.Orders {
		if o.Sale == sale && o.Taken && !o.Again && !h.Hoarding.Fakes[o.Buyer] {
			bought += units(o.Lines)
		}
	}
	return bought, h.loaded(sale)
}

// loaded is how many units of a sale operators have put on sale.
func (h *History) loaded(sale string) (n int64) {
	for _, units := range h.Stock[sale] {
		n += units
	}
	return n
}
