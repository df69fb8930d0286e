package reservation

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ProbePlan says how often the shop is asked about a reservation in doubt.
type ProbePlan struct {
	// Wait is the pause after the first try; it doubles with every try, up to
	// LongestWait.
	Wait, LongestWait time.Duration
	// Tries bounds how often the shop is asked about one reservation; after that an
	// operator must settle it.
	Tries int
	// AtOnce bounds the reservations that one call takes: as many as can be asked about
	// before Wait is over. Default: 100.
	AtOnce int
}

// ProbeDue is a reservation about which the shop is to be asked now.
type ProbeDue struct {
	ID, Ref string
	// Deadline is when the hold ends; before it, ProbeAbsent proves nothing.
	Deadline time.Time
}

// ProbeAnswer is what the shop said about a reservation in doubt.
type ProbeAnswer string

// The probe answers: the shop has the order, does not have it, or did not say.
const (
	ProbePresent ProbeAnswer = "present"
	ProbeAbsent  ProbeAnswer = "absent"
	ProbeUnknown ProbeAnswer = "unknown"
)

// probesAtOnce is how many reservations in doubt one script call reads.
const probesAtOnce = 100

// TakeDueProbes returns a gate's reservations in doubt about which the shop is to be asked
// now, the oldest first, and counts the try: no other edge gets them until the pause is
// over. It reads some, beginning at offset; next is the offset of the next call, 0: all
// have been read.
func (s *Store) TakeDueProbes(ctx context.Context, sale, gate string, p ProbePlan, offset int) (due []ProbeDue, next int, err error) {
	if p.Wait <= 0 || p.LongestWait <= 0 || p.Tries < 1 || p.AtOnce < 0 {
		return nil, 0, fmt.Errorf("a plan with pauses of %v to %v and %d tries never asks", p.Wait, p.LongestWait, p.Tries)
	}
	op := shard.Op(lua.Probe, gate, probesAtOnce, offset, p.Wait.Milliseconds(), p.Tries, p.LongestWait.Milliseconds(), cmp.Or(p.AtOnce, probesAtOnce))
	r, err := s.Resolve(ctx, sale, op)
	if err != nil {
		return nil, 0, err
	}
	for i := 2; i+2 < len(r); i += 3 {
		due = append(due, ProbeDue{ID: r.Text(i), Ref: r.Text(i + 1), Deadline: r.Time(i + 2)})
	}
	return due, int(r.Number(1)), nil
}

// Probed records what the shop answered. ProbePresent confirms the reservation.
// ProbeAbsent counts once for each time that TakeDueProbes gave out the reservation after
// its deadline; the second one releases it. Probed returns the reservation's state now.
func (s *Store) Probed(ctx context.Context, sale, id string, v ProbeAnswer, cause string) (record.State, error) {
	return s.settle(ctx, sale, shard.Op(lua.Probed, id, string(v), cause))
}
