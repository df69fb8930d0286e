package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A flood of answers that are as small as can be ends at the bound of the sale. Redis takes
// for each at most answerRoom bytes beside the answer itself.
func TestStoredAnswersFlood(t *testing.T) {
	const packed, answerRoom, together = len(`{"status":204}`), 256, 64
	flood := draw.Times(12_000, 60_000) * *floodTimes
	fit := min(flood/2, reservation.MaxAnswers/packed)
	b := redistest.Start(t)
	c := b.Client()
	if err := c.Set(stocktest.Soon(t), "stockgate:{s.0}:answers", reservation.MaxAnswers-fit*packed, 0).Err(); err != nil {
		t.Fatal(err)
	}
	before := stocktest.UsedMemory(t, c)
	s := stocktest.OpenStore(t, stocktest.Options(b))
	var next, stored atomic.Int64
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for n := next.Add(1); n <= int64(flood); n = next.Add(1) {
				err := s.StoreAnswer(t.Context(), "s", fmt.Sprintf("019aa5f0-0000-7000-8000-%012d", n), &reservation.StoredAnswer{Status: 204}, time.Hour)
				if err == nil {
					stored.Add(1)
				} else if !errors.Is(err, reservation.ErrAnswerTooLarge) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	s.Close() // its connections take memory too, more than a small flood
	stocktest.Eventually(t, "one connection", func() bool {
		clients, err := c.ClientList(stocktest.Soon(t)).Result()
		return err == nil && strings.Count(clients, "\n") == 1
	})
	grown := stocktest.UsedMemory(t, c) - before
	n := int(stored.Load())
	t.Logf("of %d answers %d are stored: Redis has grown by %d bytes, %d for each", flood, n, grown, grown/max(n, 1))
	// an answer that meets the bound counts for a moment, so that others may meet it too
	if n > fit || n < fit-together {
		t.Errorf("%d answers are stored, want %d", n, fit)
	}
	if grown > n*(packed+answerRoom) {
		t.Errorf("Redis has grown by %d bytes, %d for each answer", grown, grown/n)
	}
}
