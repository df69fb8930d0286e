package notify

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/post"
	"github.com/stockgate/stockgate/internal/store/notices"
)

const (
	// lookEvery is how often a sender looks for what waits.
	lookEvery = time.Second
	// maxRefusals is how often a message is sent that the receiver says it cannot read.
	maxRefusals = 5
	// troubleAfter is how often a message is refused before operators are told elsewhere.
	troubleAfter = 3
	// callFor bounds one call of Redis.
	callFor = 5 * time.Second
	// graceFor is how long a receiver may take to answer when the sender is to end.
	graceFor = 2 * time.Second
)

// Metrics receives what a sender counts. Implementations must be safe for concurrent use.
type Metrics interface {
	// NoticePosted: the receiver has answered with 2xx, 3xx, 4xx or 5xx, or has not answered (none).
	NoticePosted(answer string)
	// NoticesSent: the receiver has taken so many notices.
	NoticesSent(n int)
	// NoticesLost: so many found no room, or were refused for good.
	NoticesLost(n int64)
	// NoticesWait: so many wait, the oldest for so long.
	NoticesWait(n int64, oldest time.Duration)
}

// Retry are the pauses between tries, which double from Soon to Most and are cut by up to half at random. Defaults:
// 500 ms to 2 min.
type Retry struct{ Soon, Most time.Duration }

// Courier sends what waits in Redis. One edge runs one at a time; Held says that it still may.
type Courier struct {
	Notices  *notices.Notices
	Receiver *Receiver
	Log      *zap.Logger
	Metrics  Metrics
	Retry    Retry
	// Held reports whether no other edge sends.
	Held func() bool

	fault    atomic.Pointer[error] // why the receiver has not taken the last message; nil: it has
	tries    atomic.Int64          // that failed since the last message was taken
	message  *notices.Digest       // that is being sent
	accepted bool                  // the receiver has it, and Redis does not know that yet
	refusals int
	pause    time.Duration
}

// Trouble says why the receiver does not get what waits; nil: it does, or it is too early to say.
func (s *Courier) Trouble() error {
	if fault := s.fault.Load(); fault != nil && s.tries.Load() >= troubleAfter {
		return *fault
	}
	return nil
}

// Run sends until ctx ends, or until another edge does.
func (s *Courier) Run(ctx context.Context) {
	defer func() {
		s.fault.Store(nil)
		s.Metrics.NoticesWait(0, 0)
	}()
	for ctx.Err() == nil {
		if !s.Held() {
			return
		}
		loop.Rest(ctx, s.round(ctx), nil)
	}
}

// round sends a message once, and returns the pause before the next one.
func (s *Courier) round(ctx context.Context) time.Duration {
	if s.message == nil {
		call, cancel := context.WithTimeout(ctx, callFor)
		m, waits, err := s.Notices.Take(call)
		cancel()
		if err != nil {
			return lookEvery
		}
		s.Metrics.NoticesWait(waits.Waiting, waits.Oldest)
		if m == nil {
			return lookEvery
		}
		s.message, s.accepted, s.refusals = m, false, 0
	}
	if !s.accepted {
		a := s.post(ctx)
		if ctx.Err() != nil && !a.Accepted() {
			return 0
		}
		s.Metrics.NoticePosted(a.Class())
		if !a.Accepted() {
			return s.refuse(ctx, a)
		}
		s.hear(nil)
		s.accepted = true
		s.Metrics.NoticesSent(len(s.message.Notices))
		s.Metrics.NoticesLost(s.message.Lost)
	}
	return s.note(ctx, s.Notices.Sent)
}

// post posts the message. When ctx ends, the receiver gets a moment to answer, so that it does not get the same again.
func (s *Courier) post(ctx context.Context) post.Receipt {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { loop.Rest(last, graceFor, nil); cancel() })
	defer stop()
	return s.Receiver.Post(last, s.message)
}

// note tells Redis how the message has ended.
func (s *Courier) note(ctx context.Context, how func(context.Context, *notices.Digest) error) time.Duration {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callFor)
	defer cancel()
	if how(call, s.message) != nil {
		return lookEvery // the same message again, and without the receiver
	}
	s.message, s.pause = nil, 0
	return 0
}

// refuse notes that the receiver has not taken the message, and returns when to try again.
func (s *Courier) refuse(ctx context.Context, a post.Receipt) time.Duration {
	s.tries.Add(1)
	s.hear(Fault(a))
	waits, err := s.Notices.Waiting(ctx)
	if err == nil {
		s.Metrics.NoticesWait(waits.Waiting, waits.Oldest)
	}
	if unreadable(a.Status) {
		if s.refusals++; s.refusals >= maxRefusals {
			s.Log.Error("the receiver of notices refuses a message again and again: it is dropped, and the next one says so", zap.Int("status", a.Status))
			return s.note(ctx, s.Notices.Refused)
		}
	}
	s.pause = s.Retry.next(s.pause)
	return max(s.pause/2+rand.N(s.pause/2+1), a.After)
}

// unreadable reports whether a receiver refuses this message, and perhaps no other one.
func unreadable(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// hear logs a fault when it changes, and its end.
func (s *Courier) hear(fault error) {
	before := s.fault.Load()
	switch {
	case fault == nil && before != nil:
		s.fault.Store(nil)
		s.tries.Store(0)
		s.Log.Info("the receiver takes notices again")
	case fault != nil && (before == nil || (*before).Error() != fault.Error()):
		s.fault.Store(&fault)
		s.Log.Error("the receiver of notices does not take them; they wait, and selling goes on", zap.Error(fault))
	}
}

func (r *Retry) next(pause time.Duration) time.Duration {
	return min(max(2*pause, cmp.Or(r.Soon, 500*time.Millisecond)), cmp.Or(r.Most, 2*time.Minute))
}
