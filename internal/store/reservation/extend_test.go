package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A deadline moves forward only, up to the longest that is allowed; the token ends
// as long before it as ever.
func TestExtend(t *testing.T) {
	steps := []struct {
		after, holdFor time.Duration
		want           time.Duration // from the creation to the deadline
		told           bool
	}{
		{0, time.Minute, time.Minute, false}, // it is held so long already
		{0, 30 * time.Second, time.Minute, false},
		{30 * time.Second, time.Minute, 90 * time.Second, true},
		{0, time.Minute, 90 * time.Second, false},            // a repeat is harmless
		{30 * time.Second, time.Hour, 5 * time.Minute, true}, // the longest
		{time.Minute, time.Hour, 5 * time.Minute, false},
		{9 * time.Minute, time.Minute, 5 * time.Minute, false}, // overdue, and still held
	}
	eachClock(t, 3, func(t *testing.T, c *clocked) {
		h := c.reserve("r1", inMode(record.ModeBackend))
		for i, s := range steps {
			c.step(s.after)
			n := c.seq()
			got, err := c.Extend(stocktest.Soon(t), "s", "r1", s.holdFor, 5*time.Minute)
			if err != nil {
				t.Fatalf("step %d: %v", i+1, err)
			}
			want := h
			want.Lines, want.Deadline, want.Exp = nil, h.Created.Add(s.want), h.Created.Add(s.want-5*time.Second)
			if got.ID != want.ID || got.Sale != want.Sale || got.State != want.State || got.Epoch != want.Epoch ||
				!got.Created.Equal(want.Created) || !got.Deadline.Equal(want.Deadline) || !got.Exp.Equal(want.Exp) {
				t.Errorf("step %d: the hold is\n%+v, want\n%+v", i+1, got, want)
			}
			told := c.told("record", n)
			if (len(told) == 1) != s.told {
				t.Errorf("step %d: the journal has %q", i+1, told)
			}
			record := fmt.Sprintf("extended held\t%d\t%d\t%d\t", want.Deadline.UnixMilli(), want.Exp.UnixMilli(), want.Created.UnixMilli())
			if s.told && !strings.HasPrefix(told[0], record) {
				t.Errorf("step %d: the journal has %q, want %q", i+1, told, record)
			}
			stocktest.Balanced(t, c.server.client, c.Store, "s")
		}
		if n, err := c.Expire(stocktest.Soon(t), "s"); n != 1 || err != nil {
			t.Errorf("%d holds are overdue, %v", n, err)
		}
		if _, err := c.Extend(stocktest.Soon(t), "s", "r1", time.Minute, time.Hour); !errors.As(err, new(*reservation.ConflictError)) {
			t.Errorf("what has expired is extended: %v", err)
		}
	})
}

// An extended hold lives until its new deadline.
func TestExtendedHoldLives(t *testing.T) {
	eachClock(t, 3, func(t *testing.T, c *clocked) {
		c.reserve("r1", inMode(record.ModeBackend))
		if _, err := c.Extend(stocktest.Soon(t), "s", "r1", 2*time.Minute, time.Hour); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{0, 1} {
			c.step(119 * time.Second)
			if n, err := c.Expire(stocktest.Soon(t), "s"); n != want || err != nil {
				t.Errorf("%d expire, %v; want %d", n, err, want)
			}
		}
		for _, id := range []string{"unknown"} {
			if _, err := c.Extend(stocktest.Soon(t), "s", id, time.Minute, time.Hour); !errors.Is(err, reservation.ErrNotFound) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}
