package mirror

import (
	"context"
	"time"
)

// Poll returns one round of the mirror of a sale, which says how long to wait.
func (m *Mirror) Poll(sale string) func(context.Context) time.Duration {
	return (&mirroring{Mirror: m, sale: sale}).poll
}
