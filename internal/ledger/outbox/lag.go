package outbox

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// lag measures how far behind the receiver is, whichever edge sends, and logs the start
// and the end of an alarm.
func (s *sending) lag(ctx context.Context, head *journal.Head) {
	if head.Unsent() > 0 && time.Since(s.looked) < lagEvery {
		return
	}
	s.looked = time.Now()
	oldest := s.oldest(ctx, head)
	s.metrics.OutboxLag(s.sale, head.Unsent(), oldest)
	behind := oldest > behindAge || head.Unsent() > behindLength
	switch {
	case behind && !s.behind:
		s.log.Error("the outbox is behind: the receiver does not hear what is sold, and the journal grows in redis until it catches up",
			zap.String("sale", s.sale), zap.Int64("movements", head.Unsent()), zap.Duration("oldest", oldest))
	case !behind && s.behind:
		s.log.Info("the outbox has caught up", zap.String("sale", s.sale))
	}
	s.behind = behind
}

// oldest is how long the oldest unsent movement has waited.
func (s *sending) oldest(ctx context.Context, head *journal.Head) time.Duration {
	if head.Unsent() == 0 || head.First == 0 {
		return 0
	}
	since := head.Began
	if head.Sent >= head.First {
		ctx, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		waits, err := s.journals.Movements(ctx, s.sale, head.Sent, 1)
		if err == nil && len(waits) == 1 {
			since = waits[0].Time
		}
	}
	return max(head.Now.Sub(since), 0)
}
