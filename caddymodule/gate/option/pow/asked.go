package pow

import (
	"net/http"
	"time"
	"unsafe"

	"github.com/stockgate/stockgate/filters/challenge"
	"github.com/stockgate/stockgate/internal/sale"
)

// maxTask is the maximum length of a task.
const maxTask = 64

// Refuse counts an attempt, and refuses it if it needs a solution and has none. of is the sale that it is likely to
// be for, and address the address of its client.
func (c *Challenger) Refuse(now time.Time, keys []challenge.TaskKey, h http.Header, of, address string) *sale.Refusal {
	scope := challenge.TaskScope{Gate: c.Scope, Sale: of, Address: address}
	bits := c.Judge(now, keys, scope, c.solution(h))
	if bits == 0 {
		return nil
	}
	var room [maxTask]byte
	return &sale.Refusal{Reason: sale.Challenge, Challenge: string(challenge.AppendTask(room[:0], now, &keys[0], scope, bits))}
}

// Asked is what a fast refusal knows about the challenge. It has room for a refusal.
type Asked struct {
	// Reached: the attempt has reached the challenge, and counts if it is refused here.
	Reached  bool
	scope    challenge.TaskScope
	solution string
	task     [maxTask]byte
	refusal  sale.Refusal
}

// Foresee is Refuse for an attempt that the gate may still count itself: it counts nothing and spends no solution.
func (c *Challenger) Foresee(a *Asked, now time.Time, keys []challenge.TaskKey, h http.Header, of, address string) *sale.Refusal {
	a.Reached, a.scope, a.solution = true, challenge.TaskScope{Gate: c.Scope, Sale: of, Address: address}, c.solution(h)
	return a.refuse(c.Challenger.Foresee(now, keys, a.scope, a.solution), keys, now)
}

// Settle counts an attempt that was foreseen, and spends its solution, as Refuse would have done. It refuses if the
// solution has been spent in the meantime.
func (c *Challenger) Settle(a *Asked, now time.Time, keys []challenge.TaskKey) *sale.Refusal {
	return a.refuse(c.Judge(now, keys, a.scope, a.solution), keys, now)
}

// refuse makes the refusal in the memory of a. nil: no bits are required.
func (a *Asked) refuse(bits int, keys []challenge.TaskKey, now time.Time) *sale.Refusal {
	if bits == 0 {
		return nil
	}
	task := challenge.AppendTask(a.task[:0], now, &keys[0], a.scope, bits)
	a.refusal = sale.Refusal{Reason: sale.Challenge, Challenge: unsafe.String(&task[0], len(task))}
	return &a.refusal
}
