package caddymodule

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/reservation"
)

// What is known of a sale's books is good for some seconds after Redis has gone.
// In a bubble, or the machine may stall between the clock and the question.
func TestBooksGrowOld(t *testing.T) { synctest.Test(t, booksGrowOld) }

func booksGrowOld(t *testing.T) {
	away := errors.New("away")
	books := new(reservation.Overview)
	for name, c := range map[string]struct {
		shelved
		readAgo, triedAgo time.Duration
		fresh             bool
		err               error
	}{
		"just read":               {shelved{books: books}, 0, 0, true, nil},
		"read a second ago":       {shelved{books: books}, time.Second, time.Second, false, nil},
		"large, two seconds ago":  {shelved{books: books, every: 3 * time.Second}, 2 * time.Second, 2 * time.Second, true, nil},
		"large, four seconds ago": {shelved{books: books, every: 3 * time.Second}, 4 * time.Second, 4 * time.Second, false, nil},
		"large, away for a while": {shelved{books: books, every: 3 * time.Second, err: away}, 7 * time.Second, 0, true, nil},
		"away for four seconds":   {shelved{books: books, err: away}, 4 * time.Second, 0, true, nil},
		"away for six seconds":    {shelved{books: books, err: away}, 6 * time.Second, 0, true, away},
		"not asked for a minute":  {shelved{books: books}, time.Minute, time.Minute, false, errBooksOld},
		"never read, just failed": {shelved{err: away}, 0, 0, true, away},
	} {
		c.every = max(c.every, booksEvery)
		now := time.Now()
		c.read, c.tried = now.Add(-c.readAgo), now.Add(-c.triedAgo)
		if got := c.shelved.fresh(); got != c.fresh {
			t.Errorf("%s: fresh is %t", name, got)
		}
		got, err := c.usable()
		if !errors.Is(err, c.err) || (err == nil) != (got != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
