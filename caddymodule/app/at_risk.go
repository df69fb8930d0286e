package app

import (
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/edge/risk"
)

// bound reads at_risk. Where another server may take over, what a failover may lose must be
// chosen.
func (r *Redis) bound() (risk.Bound, error) {
	switch {
	case r.AtRisk != "" && r.Embedded:
		return risk.Bound{}, errors.New("`embedded` stands alone; only timeout goes with it")
	case r.AtRisk != "":
		return risk.ParseBound(r.AtRisk)
	case r.ReplicaAcks > 0:
	case r.Sentinel != "":
		return risk.Bound{}, unchosen("sentinel", "add `replica_acks 1 50ms`, with as many replicas as can be promoted, so that nothing is acknowledged before they have it; or add")
	case r.Cluster:
		return risk.Bound{}, unchosen("cluster", "add")
	}
	return risk.Bound{}, nil
}

func unchosen(mode, remedy string) error {
	return fmt.Errorf("with %s a replica takes over, which may lack what was sold a moment before: %s `at_risk 50` to sell while at most 50 units of a sale can be lost so, "+
		"`at_risk 1s` for what was sold in a second, or `at_risk any`", mode, remedy)
}
