package dashboard

import (
	"context"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
)

// waitlistFrame is the waiting list of a sale: who is on it now as this edge follows it, and sums over its life and all
// edges.
type waitlistFrame struct {
	Waiting  int   `json:"waiting"` // without an offer
	Offered  int   `json:"offered"` // offers that are open
	Most     int64 `json:"most"`
	Full     bool  `json:"full,omitempty"` // four fifths of most are on it
	Accepted int64 `json:"accepted"`
	Lapsed   int64 `json:"lapsed"`
	Left     int64 `json:"left"`             // or could not get an offer, or were closed out
	Paused   int64 `json:"paused,omitempty"` // ms, since when an operator lets no offer be made; 0: offers are made
}

// onList reads the waiting list of a sale; nil: it has none.
func onList(ctx context.Context, d *edgeruntime.Runtime, l *edge.Listing) (*waitlistFrame, error) {
	s, err := d.List(ctx, l)
	if s == nil || err != nil {
		return nil, err
	}
	f := &waitlistFrame{
		Waiting: s.People - s.Offered, Offered: s.Offered, Most: s.Most, Full: s.NearlyFull(),
		Accepted: s.Accepted, Lapsed: s.Lapsed, Left: s.Left + s.Closed + s.Other,
	}
	if !s.PausedSince.IsZero() {
		f.Paused = s.PausedSince.UnixMilli()
	}
	return f, nil
}
