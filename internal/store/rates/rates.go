package rates

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Rate is how often attempts with one key may come, on all edges together.
type Rate struct {
	kind                  string // is hashed with the keys, so that other rates have other buckets
	events, window, burst int64
	keys                  int64
}

const (
	// DefaultKeys is how many keys of a shared rate have buckets of their own at a time, in
	// about 200 MB of Redis.
	DefaultKeys = 1_000_000
	// coarseKeys is how many buckets all further keys of a rate share.
	coarseKeys = 4096
)

// NewRate makes a rate: at most burst attempts at once, and events in each window in the long
// run. Edges count together when id and numbers are the same. window is in whole ms, and burst
// times its ms must be below 1e14.
func NewRate(id string, events int, window time.Duration, burst int) *Rate {
	r := &Rate{events: int64(events), window: window.Milliseconds(), burst: int64(burst), keys: DefaultKeys}
	r.kind = fmt.Sprintf("rate %d/%d/%d %s", r.events, r.window, r.burst, id)
	return r
}

// WithKeys bounds how many keys have buckets of their own. Beyond the bound, a key without a
// bucket shares one with others, so that Redis does not grow: it may pass less often.
func (r *Rate) WithKeys(n int) *Rate {
	r.keys = int64(n)
	return r
}

// Try is an attempt's key for one shared rate.
type Try struct {
	Rate *Rate
	Key  string
}

// Rates counts the shared rates of all edges in one Redis. It is safe for concurrent use.
type Rates struct {
	shard  *shard.Client
	calls  *combine.Combiner[rateKeys, shard.Reply]
	over   overMemory
	secret func() *identity.Secret
	failed func()
}

// rateKeys is what the script takes for one attempt.
type rateKeys struct {
	keys []string
	args []any
}

// New counts rates in a Redis. Keys are hashed with the result of secret; nil: the secret is
// not known yet. failed is called for each call that got no answer.
func New(shard *shard.Client, secret func() *identity.Secret, failed func()) *Rates {
	r := &Rates{shard: shard, secret: secret, failed: failed}
	r.calls = combine.NewCombiner(r.send)
	return r
}

// Shard is the Redis in which the rates are counted.
func (r *Rates) Shard() *shard.Client { return r.shard }

// Waiting is how many attempts wait for Redis.
func (r *Rates) Waiting() int { return r.calls.Waiting() }

// Close rejects waiting and new attempts, and waits for the calls under way. It does not close
// the connection to Redis.
func (r *Rates) Close() {
	r.calls.Close()
	r.calls.Wait()
}

// Take counts an attempt for all of its shared rates, or for none: then over is the index of
// the rate that has to wait longest, and wait is how long; else over is -1. A key that is known
// to be over costs no call. An error wraps ErrUnavailable: it is then unknown whether the
// attempt was counted.
func (r *Rates) Take(ctx context.Context, tries []Try) (over int, wait time.Duration, err error) {
	asked := time.Now()
	if over, wait = r.knownOver(tries, asked); over >= 0 {
		return over, wait, nil
	}
	secret := r.secret()
	if secret == nil {
		return -1, 0, fmt.Errorf("%w: %w", shard.ErrUnavailable, shard.ErrStarting)
	}
	keys := make([]string, 0, 3*len(tries))
	args := make([]any, 1, 1+4*len(tries))
	args[0] = len(tries)
	for _, t := range tries {
		key, count := secret.Identity(t.Rate.kind, t.Key), secret.Identity("keys of "+t.Rate.kind, "")
		coarse := count + "." + strconv.Itoa(coarseOf(key))
		keys = append(keys, r.shard.RateKey(key), r.shard.RateKey(coarse), r.shard.RateKey(count))
		args = append(args, t.Rate.events, t.Rate.window, t.Rate.burst, t.Rate.keys)
	}
	answer, err := r.call(ctx, rateKeys{keys, args})
	if err != nil {
		return -1, 0, err
	}
	switch answer.Code() {
	case lua.OK:
		return -1, 0, nil
	case lua.Over:
		over = min(max(int(answer.Number(1)), 1), len(tries)) - 1
		wait = answer.Duration(2)
		// Redis's clock has reached at least the ms in which the call was made.
		r.over.remember(tries[over], asked.Add(wait-time.Millisecond))
		return over, wait, nil
	}
	return -1, 0, fmt.Errorf("%w: rate gave %q", shard.ErrUnavailable, answer.Code())
}

// coarseOf is the number of the bucket that a key shares when there is no room for its own.
func coarseOf(identity string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(identity)) // never fails
	return int(h.Sum32() % coarseKeys)
}

// knownOver finds, among the tries that are known to be over, the one that has to wait longest;
// -1: none is over.
func (r *Rates) knownOver(tries []Try, now time.Time) (over int, wait time.Duration) {
	over = -1
	for i, t := range tries {
		if w := r.over.wait(t, now); w > wait {
			over, wait = i, w
		}
	}
	return over, wait
}

// send runs the script once for several attempts.
func (r *Rates) send(_ string, batch []*combine.Ticket[rateKeys, shard.Reply]) {
	ctx, cancel := context.WithDeadline(context.Background(), combine.CallUntil(batch, r.shard.Timeout()))
	defer cancel()
	var keys []string
	var args []any
	for _, t := range batch {
		keys = append(keys, t.Request.keys...)
		args = append(args, t.Request.args...)
	}
	raw, err := r.shard.Eval(ctx, lua.Rate, keys, args, 0)
	if err == nil && len(raw) != len(batch)+1 {
		err = fmt.Errorf("%w: a script gave %d answers to %d attempts", shard.ErrUnavailable, len(raw)-1, len(batch))
	}
	if err != nil {
		combine.FailAll(batch, err)
		return
	}
	for i, t := range batch {
		answer, _ := raw[i+1].([]any)
		t.Answer(answer, nil)
	}
}

// call runs the script for one attempt. If the connection breaks it calls again: counting an
// attempt twice is better than refusing a buyer.
func (r *Rates) call(ctx context.Context, k rateKeys) (shard.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.shard.Timeout())
	defer cancel()
	for try := 0; ; try++ {
		answer, err := r.calls.Do(ctx, "", &combine.Ticket[rateKeys, shard.Reply]{Request: k, Weight: len(k.keys) / 3})
		if err == nil {
			return answer, nil
		}
		r.failed()
		if !shard.Repeatable(ctx, err) || try == 2 {
			return nil, err
		}
	}
}
