package edge

import "github.com/stockgate/stockgate/internal/edge/risk"

// AtRisk returns the units of a sale that a failover may lose: those that were sold, and
// that neither every replica nor the ledger has yet, as far as this edge knows. Without
// replicas it counts none.
func (e *Edge) AtRisk(sale string) risk.State { return e.risk.Of(sale) }
