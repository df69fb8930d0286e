package reservation

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Risk counts the units that a failover may lose, and bounds them.
type Risk interface {
	// Admit reports which of n reserve requests of a sale may be sent now; nil: all. units
	// returns the units of each.
	Admit(ctx context.Context, sale string, n int, units func(int) int64) []bool
	// Sold is called before the callers of a batch hear that these units are held. The journal
	// has them up to seq.
	Sold(sale string, units, seq int64)
}

// ErrAtRisk says that as much of a sale is at risk as at_risk allows. Nothing was sent.
var ErrAtRisk = fmt.Errorf("%w: its replicas do not have what was sold, and at_risk allows no more (%w)", shard.ErrUnavailable, shard.ErrNotSent)

// refuseAtRisk is the refusal of attempts that end with ErrAtRisk.
var refuseAtRisk = sale.Refuse(sale.Unavailable)

// admitted returns the reserve requests that may be sent now, and fails the others.
func (s *Store) admitted(ctx context.Context, sale string, claims []*Call) []*Call {
	if s.Risk == nil {
		return claims
	}
	may := s.Risk.Admit(ctx, sale, len(claims), func(i int) int64 { return claims[i].Request.claim.units })
	if may == nil {
		return claims
	}
	out := claims[:0]
	for i, t := range claims {
		if may[i] {
			out = append(out, t)
		} else {
			t.Fail(ErrAtRisk)
		}
	}
	return out
}

// sold counts the units that the reserve requests of a batch have got.
func (s *Store) sold(sale string, batch []*Call, replies []shard.Reply, seq int64, err error) {
	if s.Risk == nil || err != nil {
		return
	}
	units := int64(0)
	for i, t := range batch {
		if t.Request.claim != nil && replies[i].Code() == lua.OK {
			units += t.Request.claim.units
		}
	}
	if units > 0 {
		s.Risk.Sold(sale, units, seq)
	}
}
