package waitlist

import (
	"context"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// pausedField says since when no offer is made, see lua/waitlist.lua.
const pausedField = "paused"

// countFields are the sums that Redis keeps, in the order of ListCounts.
var countFields = []string{"last", "live", "n|offers", "n|accepted", "n|lapsed", "n|left", "n|closed", "n|other", pausedField}

// ListCounts are sums over the life of a sale's list and all edges.
type ListCounts struct {
	// Entered is how many people have entered, and People how many are on the list.
	Entered, People int64
	// Offers is how many offers were made.
	Offers int64
	// Accepted, Lapsed, Left, Closed and Other are how many entries have ended, by why. Other are people who may not buy
	// any more, or whom an operator has taken off.
	Accepted, Lapsed, Left, Closed, Other int64
	// PausedSince is since when an operator lets no offer be made; zero: offers are made.
	PausedSince time.Time
}

// ReadCounts reads the sums of a sale from Redis.
func ReadCounts(ctx context.Context, d shard.Data) (c ListCounts, err error) {
	v, err := d.Values(ctx, shard.WaitlistKey, countFields...)
	if err != nil {
		return c, err
	}
	for i, into := range []*int64{&c.Entered, &c.People, &c.Offers, &c.Accepted, &c.Lapsed, &c.Left, &c.Closed, &c.Other} {
		*into = v.Number(i)
	}
	if n := len(countFields) - 1; v.Has(n) {
		c.PausedSince = time.UnixMilli(v.Number(n))
	}
	return c, nil
}

// OpenOffers reads from Redis how many offers of a sale are open: a scan, for an edge that does not follow the list.
func OpenOffers(ctx context.Context, d shard.Data) (open int, err error) {
	seen := make(map[string]int) // a field may come twice
	err = d.Each(ctx, shard.WaitlistKey, "c|*", 1000, func(field, text string) error {
		var waiting, offered int
		if _, err := fmt.Sscanf(text, "%d %d", &waiting, &offered); err == nil { // else another client has damaged it
			seen[field] = offered
		}
		return nil
	})
	for _, offered := range seen {
		open += offered
	}
	return open, err
}

// End counts that an entry has ended.
func (c *ListCounts) End(why string) {
	switch why {
	case "accepted":
		c.Accepted++
	case "lapsed":
		c.Lapsed++
	case "left":
		c.Left++
	case "closed":
		c.Closed++
	default:
		c.Other++
	}
}

// fields calls yield for each sum that Redis keeps beside last and live, where it is not 0.
func (c *ListCounts) fields(yield func(name string, n int64)) {
	all := []int64{c.Entered, c.People, c.Offers, c.Accepted, c.Lapsed, c.Left, c.Closed, c.Other}
	for i := 2; i < len(all); i++ {
		if all[i] > 0 {
			yield(countFields[i], all[i])
		}
	}
	if !c.PausedSince.IsZero() {
		yield(pausedField, record.MsOf(c.PausedSince))
	}
}

// Pauses is what stops offers of a sale, or lets them go on.
func Pauses(stop bool, by string) shard.Operation {
	word := "resume"
	if stop {
		word = "pause"
	}
	return shard.Op(lua.Offers, word, by)
}

// PauseOffers lets no more offers be made in a sale, or lets them go on. Open ones stay as they are. It reports whether that
// changes anything. The error is shard.ErrNoSale where there is no such sale.
func PauseOffers(ctx context.Context, s *reservation.Store, sale string, stop bool, by string) (changed bool, err error) {
	replies, err := s.Shard().RunReplicated(ctx, sale, Pauses(stop, by))
	if err != nil {
		return false, err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		return r.Number(1) == 1, nil
	case lua.NoSale:
		return false, shard.ErrNoSale
	default:
		return false, fmt.Errorf("%w: offers gave %q", shard.ErrUnavailable, r.Code())
	}
}
