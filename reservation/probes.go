package reservation

import (
	"cmp"
	"context"
	"fmt"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
	"time"
)

// ProbePlan says how often the shop is asked about a reservation in doubt.
type ProbePlan struct {
	// Wait is the pause after the first try; it doubles with every try, up to
	// LongestWait.
	Wait, LongestWait time.Duration
	// Tries is how often one reservation is asked about; then a person must.
	Tries int
	// AtOnce is how many are claimed by one call, at most: as many as can be asked about
	// before Wait is over. Default: 100.
	AtOnce int
}

// ProbeDue is a reservation about which the shop is to be asked now.
type ProbeDue struct {
	ID, Ref string
	// Deadline is until when an absence proves nothing.
	Deadline time.Time
}

// ProbeVerdict is what the shop said about a reservation in doubt.
type ProbeAnswer string

// ProbePresent: the shop has the order. ProbeAbsent: it has none. ProbeUnknown: it
// did not say.
const (
	ProbePresent ProbeAnswer = "present"
	ProbeAbsent  ProbeAnswer = "absent"
	ProbeUnknown ProbeAnswer = "unknown"
)

// probesAtOnce is how many reservations in doubt one script call looks at.
const probesAtOnce = 100

// ClaimProbes returns the reservations in doubt of a gate about which the shop is to
// be asked now, the oldest first, and counts the try: no other edge gets them until
// the pause is over. It looks at some, beginning at offset; next is where to go on,
// 0: all have been looked at.
func (s *Store) TakeDueProbes(ctx context.Context, sale, gate string, p ProbePlan, offset int) (due []ProbeDue, next int, err error) {
	if p.Wait <= 0 || p.LongestWait <= 0 || p.Tries < 1 || p.AtOnce < 0 {
		return nil, 0, fmt.Errorf("a plan with pauses of %v to %v and %d tries never asks", p.Wait, p.LongestWait, p.Tries)
	}
	op := shard.Op("probe", gate, probesAtOnce, offset, p.Wait.Milliseconds(), p.Tries, p.LongestWait.Milliseconds(), cmp.Or(p.AtOnce, probesAtOnce))
	r, err := s.Resolve(ctx, sale, op)
	if err != nil {
		return nil, 0, err
	}
	for i := 2; i+2 < len(r); i += 3 {
		due = append(due, ProbeDue{ID: r.Text(i), Ref: r.Text(i + 1), Deadline: time.UnixMilli(r.Number(i + 2))})
	}
	return due, int(r.Number(1)), nil
}

// Probed says what the shop answered. Present confirms. Absent counts where the
// reservation was claimed after its deadline, once for each time; the second one
// releases. It returns the state that holds then.
func (s *Store) Probed(ctx context.Context, sale, id string, v ProbeAnswer, cause string) (record.State, error) {
	return s.settle(ctx, sale, shard.Op("probed", id, string(v), cause))
}
