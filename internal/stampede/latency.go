package stampede

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets that are at most 3 % wide, from a
// microsecond up. It is safe for concurrent use.
type histogram struct {
	buckets [halfBuckets * 60]atomic.Int64
	longest atomic.Int64 // in ns
}

// halfBuckets is how many buckets each power of two has.
const halfBuckets = 32

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.buckets[bucketOf(uint64(d.Microseconds()))].Add(1)
	for {
		longest := h.longest.Load()
		if int64(d) <= longest || h.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// bucketOf is the number below 64, and above it the power of two and the five
// bits that follow the first.
func bucketOf(us uint64) int {
	if us < 2*halfBuckets {
		return int(us)
	}
	shift := bits.Len64(us) - 6
	return shift*halfBuckets + int(us>>shift)
}

// upperBound is the longest duration of a bucket.
func upperBound(bucket int) time.Duration {
	if bucket < 2*halfBuckets {
		return time.Duration(bucket) * time.Microsecond
	}
	shift := bucket/halfBuckets - 1
	us := uint64(bucket%halfBuckets+halfBuckets+1)<<shift - 1
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond
}

// Latency says how long answers took.
type Latency struct {
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func (h *histogram) latency() Latency {
	longest := time.Duration(h.longest.Load())
	return Latency{
		P50: min(h.quantile(0.50), longest),
		P90: min(h.quantile(0.90), longest),
		P99: min(h.quantile(0.99), longest),
		Max: longest,
	}
}

// quantile is the shortest bound that so large a share does not exceed; 0: nothing
// was counted.
func (h *histogram) quantile(share float64) time.Duration {
	var total int64
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	rank := int64(math.Ceil(share * float64(total)))
	var below int64
	for i := range h.buckets {
		if below += h.buckets[i].Load(); below >= rank && rank > 0 {
			return upperBound(i)
		}
	}
	return 0
}
