package reservation

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// SharedRate is how often attempts with one key may come, on all edges together.
type SharedRate struct {
	kind                  string // what keys are hashed with: other rates have other buckets
	events, window, burst int64
	keys                  int64
}

const (
	// DefaultSharedKeys is how many keys of a shared rate have buckets of their own at a
	// time, in about 200 MB of Redis.
	DefaultSharedKeys = 1_000_000
	// coarseKeys is how many buckets all further keys of a rate share.
	coarseKeys = 4096
)

// NewSharedRate makes a rate: at most burst attempts at once, and events in each
// window in the long run. Edges on which id and numbers are the same count together.
// window is in whole ms, and burst times its ms must be below 1e14.
func NewSharedRate(id string, events int, window time.Duration, burst int) *SharedRate {
	r := &SharedRate{events: int64(events), window: window.Milliseconds(), burst: int64(burst), keys: DefaultSharedKeys}
	r.kind = fmt.Sprintf("rate %d/%d/%d %s", r.events, r.window, r.burst, id)
	return r
}

// WithKeys bounds how many keys have buckets of their own. Beyond it, a key that has
// none shares a bucket with others, so that Redis does not grow: it may pass less often.
func (r *SharedRate) WithKeys(n int) *SharedRate {
	r.keys = int64(n)
	return r
}

// RateTry is an attempt's key for one shared rate.
type RateTry struct {
	Rate *SharedRate
	Key  string
}

// TakeRates counts an attempt for all of its shared rates, or for none: then over is
// the index of the one that has to wait longest, and wait how long; else it is -1. A
// key that is known to be over costs no call. An error wraps ErrUnavailable: whether
// the attempt was counted is unknown then.
func (e *Edge) TakeRates(ctx context.Context, tries []RateTry) (over int, wait time.Duration, err error) {
	asked := time.Now()
	if over, wait = e.knownOver(tries, asked); over >= 0 {
		return over, wait, nil
	}
	secret := e.secret.Load()
	if secret == nil {
		return -1, 0, fmt.Errorf("%w: %w", ErrUnavailable, ErrStarting)
	}
	keys := make([]string, 0, 3*len(tries))
	args := make([]any, 1, 1+4*len(tries))
	args[0] = len(tries)
	for _, t := range tries {
		key, count := secret.Identity(t.Rate.kind, t.Key), secret.Identity("keys of "+t.Rate.kind, "")
		coarse := count + "." + strconv.Itoa(coarseOf(key))
		keys = append(keys, e.rates.rateKey(key), e.rates.rateKey(coarse), e.rates.rateKey(count))
		args = append(args, t.Rate.events, t.Rate.window, t.Rate.burst, t.Rate.keys)
	}
	r, err := e.callRate(ctx, keys, args)
	if err != nil {
		return -1, 0, err
	}
	switch r.code() {
	case lua.OK:
		return -1, 0, nil
	case lua.Over:
		over = min(max(int(r.number(1)), 1), len(tries)) - 1
		wait = time.Duration(r.number(2)) * time.Millisecond
		// Redis's clock has shown at least the ms in which the call was made.
		e.over.remember(tries[over], asked.Add(wait-time.Millisecond))
		return over, wait, nil
	}
	return -1, 0, fmt.Errorf("%w: rate gave %q", ErrUnavailable, r.code())
}

// coarseOf is the number of the bucket that a key shares where there is no room for it.
func coarseOf(identity string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(identity)) // never fails
	return int(h.Sum32() % coarseKeys)
}

// knownOver finds the try that has to wait longest, of those that are known to be
// over; -1: none is.
func (e *Edge) knownOver(tries []RateTry, now time.Time) (over int, wait time.Duration) {
	over = -1
	for i, t := range tries {
		if w := e.over.wait(t, now); w > wait {
			over, wait = i, w
		}
	}
	return over, wait
}

// sendRates runs the script once for several attempts.
func (s *Store) sendRates(_ string, batch []*ticket) {
	ctx, cancel := context.WithDeadline(context.Background(), s.callUntil(batch))
	defer cancel()
	var keys []string
	var args []any
	for _, t := range batch {
		keys = append(keys, t.keys...)
		args = append(args, t.args...)
	}
	raw, err := s.eval(ctx, s.claims, s.scripts.Rate, keys, args, 0)
	if err == nil && len(raw) != len(batch)+1 {
		err = fmt.Errorf("%w: a script gave %d answers to %d attempts", ErrUnavailable, len(raw)-1, len(batch))
	}
	if err != nil {
		answerAll(batch, err)
		return
	}
	for i, t := range batch {
		r, _ := raw[i+1].([]any)
		t.answer(r, 0, nil)
	}
}

// callRate runs the script for one attempt. Where the connection breaks it is asked
// again: rather is an attempt counted twice than a buyer turned away.
func (e *Edge) callRate(ctx context.Context, keys []string, args []any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, e.rates.Timeout())
	defer cancel()
	for try := 0; ; try++ {
		r, _, err := e.rates.rateCalls.do(ctx, "", &ticket{keys: keys, args: args, weight: len(keys) / 3})
		if err == nil {
			return r, nil
		}
		(*e.metrics.Load()).RedisFailed("rate")
		if !repeatable(ctx, err) || try == 2 {
			return nil, err
		}
	}
}
