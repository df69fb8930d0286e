package filters

import (
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Rate is how often attempts with one key may come: at most Burst at once, and
// Events in each Window in the long run.
type Rate struct {
	Events int
	Window time.Duration
	// Burst is how many may come at once. Default: Events.
	Burst int
	// Keys is how many keys are told apart. Default: DefaultRateKeys.
	Keys int
}

// DefaultRateKeys is how many keys a rate tells apart unless it says otherwise.
const DefaultRateKeys = 100_000

// RateTable keeps a rate for each key, on this edge alone. It is safe for
// concurrent use.
//
// Its memory is fixed when it is made, about 100 bytes for each of Rate.Keys,
// whatever keys come and however long they are: of a key only a hash is kept,
// seeded so that nobody can choose keys that meet.
//
// A key belongs to a set of 16. When a set is full, a new key takes the place of
// the one whose bucket is fullest, that is, of the one that has been asking least.
// A full bucket is what a new key begins with, so forgetting one changes nothing;
// forgetting another gives its key back the attempts it has just made. A key that is
// over its rate is thus forgotten only where all 16 are over theirs. A new key is
// never refused for want of room.
type RateTable struct {
	seed  maphash.Seed
	limit rate.Limit
	burst int
	every int64 // ns in which a bucket gains one token
	sets  []rateSet
}

// NewRateTable makes the table of a rate. Events and Window must be above 0.
func NewRateTable(r Rate) *RateTable {
	if r.Burst == 0 {
		r.Burst = r.Events
	}
	if r.Keys == 0 {
		r.Keys = DefaultRateKeys
	}
	return &RateTable{
		seed:  maphash.MakeSeed(),
		limit: rate.Limit(float64(r.Events) / r.Window.Seconds()),
		burst: r.Burst,
		every: max(1, int64(r.Window)/int64(r.Events)),
		sets:  make([]rateSet, (r.Keys+rateWays-1)/rateWays),
	}
}

// Take counts an attempt with that key at that time: 0, it may pass; else it has
// not counted, and this is how long the key has to wait. now is the caller's
// clock: where it is behind what the table has seen, it is taken for that.
func (t *RateTable) Take(now time.Time, key string) (wait time.Duration) {
	hash := maphash.String(t.seed, key)
	at, _ := bits.Mul64(hash, uint64(len(t.sets)))
	set := &t.sets[at]
	set.mu.Lock()
	defer set.mu.Unlock()
	now = set.forward(now)
	i := set.place(t, hash|1, now) // 0 is an empty place
	bucket := &set.buckets[i]
	if bucket.AllowN(now, 1) {
		set.full[i] = max(set.full[i], set.now) + t.every
		return 0
	}
	return max(1, t.wait(bucket, now))
}

// Peek says how long an attempt with that key would have to wait at that time, and
// counts nothing: 0, Take would let it pass.
func (t *RateTable) Peek(now time.Time, key string) (wait time.Duration) {
	hash := maphash.String(t.seed, key)
	at, _ := bits.Mul64(hash, uint64(len(t.sets)))
	set := &t.sets[at]
	set.mu.Lock()
	defer set.mu.Unlock()
	i := slices.Index(set.keys[:], hash|1)
	if i < 0 {
		return 0
	}
	return t.wait(&set.buckets[i], set.forward(now))
}

// wait is how long a bucket has less than one token. What is missing less than a
// nanosecond long is there, as it is to Allow.
func (t *RateTable) wait(bucket *rate.Limiter, now time.Time) time.Duration {
	ns := (1 - bucket.TokensAt(now)) / float64(t.limit) * float64(time.Second)
	if ns < 1 {
		return 0
	}
	return time.Duration(math.Ceil(ns))
}
