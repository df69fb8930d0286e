package reservation

import "context"

// sweepAtOnce is about how many counters one script call looks at.
const sweepAtOnce = 1000

// Sweep drops the counters of purchase limits whose window is over, from one part
// of a sale's counters. It begins with cursor "0", goes on with the one returned,
// and is through when that is "0" again. It returns how many it dropped.
func (s *Store) Sweep(ctx context.Context, sale, cursor string) (next string, dropped int, err error) {
	replies, err := s.run(ctx, s.scripts.Settle, sale, operation{"sweep", []any{cursor, sweepAtOnce}})
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].word(1), int(replies[0].number(2)), nil
}

// sweeper remembers how far each sale has been swept.
type sweeper map[string]string

// sweep looks at the next part of a sale's counters, if they can be over at all.
func (w sweeper) sweep(ctx context.Context, s *Store, l *Listing) error {
	for _, limit := range l.Sale.Limits {
		if limit.Every == "sale" || limit.Every == "order" {
			continue
		}
		cursor, ok := w[l.Sale.ID]
		if !ok {
			cursor = "0"
		}
		next, _, err := s.Sweep(ctx, l.Sale.ID, cursor)
		w[l.Sale.ID] = next
		return err
	}
	return nil
}
