package challenge

import (
	"math/bits"
	"time"
)

// Policy says when there is a challenge, and how hard it is.
type Policy struct {
	// Above this many attempts in a Window, each attempt needs a solution. Both are above 0.
	Above  uint32
	Window time.Duration
	// Just above it a task has Least bits, one more for each doubling, up to Most. Both
	// are within LeastBits and MostBits. A client makes 2^bits hashes on average.
	Least, Most int
}

// Challenger judges the attempts on one gate. It is safe for concurrent use, and its
// memory is fixed: 8 MiB, for the solutions of the last minutes.
//
// Each solution serves one attempt. Where a set of spent solutions is full, which takes
// about a million of them in two minutes, the oldest is forgotten.
type Challenger struct {
	rules Policy
	meter meter
	spent *spent
}

// New makes a challenger.
func New(r Policy) *Challenger {
	return &Challenger{rules: r, meter: newMeter(r.Window), spent: newSpent()}
}

// Judge counts an attempt with its solution; an empty solution is none. 0: the attempt
// may pass, and the solution is spent. Otherwise the client must first solve a task of
// that many bits.
//
// Solutions count for tasks of this minute and of the adjacent ones, because edges'
// clocks differ; keys are all keys with which edges may issue tasks now. A task with
// fewer bits than needed serves one attempt of its address: it was issued before the
// rate rose, and collecting such tasks gains nothing.
func (c *Challenger) Judge(now time.Time, keys []TaskKey, s TaskScope, solution string) (bits int) {
	bits = c.rules.bits(c.meter.count(now))
	if bits == 0 || c.accepts(now, keys, s, solution, bits, true) {
		return 0
	}
	return bits
}

// Foresee returns what Judge would return. It counts nothing and spends nothing.
func (c *Challenger) Foresee(now time.Time, keys []TaskKey, s TaskScope, solution string) (bits int) {
	bits = c.rules.bits(c.meter.foresee(now))
	if bits == 0 || c.accepts(now, keys, s, solution, bits, false) {
		return 0
	}
	return bits
}

// Count counts an attempt that is refused because of Foresee.
func (c *Challenger) Count(now time.Time) { c.meter.count(now) }

// AppendTask appends the task of a scope with this many bits, as sent to the client.
func AppendTask(b []byte, now time.Time, key *TaskKey, s TaskScope, bits int) []byte {
	t := key.task(s, minuteOf(now), bits)
	return t.append(b)
}

// bits is how many bits an attempt needs at this count; 0: none.
func (r *Policy) bits(attempts uint32) int {
	if attempts <= r.Above {
		return 0
	}
	return min(r.Least+bits.Len32((attempts-1)/r.Above)-1, r.Most)
}

// accepts reports whether a solution serves the attempt, and spends it if spend is set.
func (c *Challenger) accepts(now time.Time, keys []TaskKey, scope TaskScope, text string, need int, spend bool) bool {
	s, ok := parse(text)
	if !ok || s.bits < c.rules.Least {
		return false
	}
	minute := minuteOf(now)
	if age := minute - s.minute; age < -1 || age > 1 || !s.issued(keys, scope) {
		return false
	}
	first, ok := s.works()
	if !ok {
		return false
	}
	easy := s.bits < need
	if !spend {
		return !c.spent.has(first[:], s.minute) && !(easy && c.spent.has(s.seed[:], s.minute))
	}
	return c.spent.take(first[:], s.minute, minute) && (!easy || c.spent.take(s.seed[:], s.minute, minute))
}

// issued reports whether the task is one of these keys for the scope.
func (s *solution) issued(keys []TaskKey, scope TaskScope) bool {
	for i := range keys {
		if genuine := keys[i].seed(scope, s.minute, s.bits); genuine.is(&s.seed) {
			return true
		}
	}
	return false
}
