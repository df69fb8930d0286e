// Package timing has times by which gates and edges work and that no configuration sets. A test of a
// running Caddy sets others where it would wait for them, or race with them on a slow machine, and makes the later
// calls itself.
package timing

import (
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

var (
	// Turn is how long an edge has the turn of an order that waits for the shop.
	Turn = usually(3 * time.Second)
	// BetweenTries is how long an edge keeps the turn of an order that did not reach its gate. It is
	// shorter than a turn lasts.
	BetweenTries = usually(time.Second)
	// SessionWait is how long a request waits for the others of its session.
	SessionWait = usually(5 * time.Second)
	// CheckRedis is how often an edge looks at Redis's settings and at what all edges share.
	CheckRedis = usually(5 * time.Second)
	// Silence is how long an edge sells without an answer from Redis. Unlike the others it counts at once
	// when a test sets it: an edge that has started becomes one to which Redis has not answered for so long.
	Silence = usually(shard.Silence)
	// Overview is the age at which the overview of a quickly read sale is read again, and the pause
	// before a failed read is retried.
	Overview = usually(time.Second)
	// Counts is how often an edge writes what it has counted.
	Counts = usually(5 * time.Second)
	// NoticeGroup is how long a notice for operators waits for others, and NoticeCalm how long something must be gone
	// before they hear that it is over.
	NoticeGroup, NoticeCalm = usually(3 * time.Second), usually(5 * time.Second)
	// Place is how often a stream looks whether the place of its person on the waiting list has changed.
	Place = usually(5 * time.Second)
	// ListFile is how often the file of a list is checked for changes.
	ListFile = usually(2 * time.Second)
)

// Time is one of these times. It is safe for concurrent use.
type Time struct{ now atomic.Int64 }

func usually(d time.Duration) *Time {
	t := new(Time)
	t.Set(d)
	return t
}

// Now is the time that counts.
func (t *Time) Now() time.Duration { return time.Duration(t.now.Load()) }

// Set sets another time, and returns the one before. Only tests call it.
func (t *Time) Set(d time.Duration) (before time.Duration) {
	return time.Duration(t.now.Swap(int64(d)))
}

// QuestionLater makes a gate ask the shop again.
var QuestionLater Later

// Later calls functions later. It is safe for concurrent use.
type Later struct {
	set atomic.Pointer[func(time.Duration, func())]
}

// Call calls a function after that long, in a goroutine of its own. After Set it gives the function to the test.
func (l *Later) Call(after time.Duration, f func()) {
	if set := l.set.Load(); set != nil {
		(*set)(after, f)
		return
	}
	time.AfterFunc(after, f)
}

// Set gives all further calls to a function, which makes them when it wants; nil: Call makes them. Only tests call it.
func (l *Later) Set(take func(after time.Duration, f func())) {
	if take == nil {
		l.set.Store(nil)
		return
	}
	l.set.Store(&take)
}
