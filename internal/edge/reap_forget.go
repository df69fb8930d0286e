package edge

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// forgetPages bounds the pages of a sale's records that one round reads. It reads on
	// while 1/forgetShare of each page was dropped: so Redis forgets as fast as
	// reservations can end, and a sale of nothing but orders costs one call.
	forgetPages, forgetShare = 40, 8
	// forgetRest is the number of rounds that a sale rests after a scan that dropped nothing.
	forgetRest = 60
)

// forgetter is how far the records of one sale have been looked through.
type forgetter struct {
	cursor  string
	dropped bool // something, since the beginning
	rest    int  // rounds until it begins again
}

// forget looks at the next part of a sale's records.
func (f *forgetter) forget(ctx context.Context, store *reservation.Store, sale string) error {
	if f.rest > 0 {
		f.rest--
		return nil
	}
	for range forgetPages {
		page, err := store.Forget(ctx, sale, f.cursor)
		if err != nil {
			return err
		}
		f.cursor, f.dropped = page.Next, f.dropped || page.Dropped > 0
		if f.cursor == "0" {
			if !f.dropped {
				f.rest = forgetRest
			}
			f.dropped = false
			return nil
		}
		if page.Dropped*forgetShare < page.Looked || page.Looked == 0 {
			return nil
		}
	}
	return nil
}
