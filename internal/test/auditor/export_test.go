package auditor

import "time"

// Apart puts a minute between the marks of a sale.
func (h *History) Apart(sale string) {
	for i := range h.marks[sale] {
		h.marks[sale][i].at = time.UnixMilli(0).Add(time.Duration(i) * time.Minute)
	}
}
