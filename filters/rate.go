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
	// Keys is how many keys are tracked. Default: DefaultRateKeys.
	Keys int
}

// DefaultRateKeys is how many keys a rate tells apart unless it says otherwise.
const DefaultRateKeys = 100_000

// RateTable keeps a rate for each key, on this edge alone. It is safe for
// concurrent use.
//
// Its memory is fixed when it is made, about 100 bytes for each of Rate.Keys,
// whatever keys come and however long they are: only a hash of a key is kept, seeded so
// that clients cannot choose keys that collide.
//
// A key belongs to a set of 16. When a set is full, a new key replaces the key with the
// fullest bucket, the one with the fewest recent attempts. A new key starts with a full
// bucket, so forgetting a full one changes nothing; forgetting another gives its key
// back its latest attempts. A key that is over its rate is therefore forgotten only
// where all 16 are. A new key is never refused for lack of space.
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

// Take counts an attempt with that key at that time. 0: it may pass. Otherwise it was
// not counted, and the result is how long the key has to wait. now is the caller's
// clock; the table uses the latest time that it has seen if now is earlier.
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

// Peek returns how long an attempt with that key would have to wait at that time,
// without counting it. 0: Take would let it pass.
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

// wait is how long until a bucket has one token. A token that is due in less than a
// nanosecond counts as present, as it does for Allow.
func (t *RateTable) wait(bucket *rate.Limiter, now time.Time) time.Duration {
	ns := (1 - bucket.TokensAt(now)) / float64(t.limit) * float64(time.Second)
	if ns < 1 {
		return 0
	}
	return time.Duration(math.Ceil(ns))
}
