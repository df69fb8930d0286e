package reservation

import (
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
)

// QueueOptions says how orders wait for the shop.
type QueueOptions struct {
	Pace
	// Most is how many orders may wait, and Memory how many bytes they may take in Redis.
	Most, Memory int64
	// Longest is how long an order may wait. Then it is released.
	Longest time.Duration
	// Edge is the edge where the request is open, and Gate the print of the gate that makes the
	// order: another edge can send it with the same gate.
	Edge, Gate string
	// Order is what is to be sent, packed; not empty.
	Order []byte
}

// Pace is how fast a shop takes orders, from all edges together.
type Pace struct {
	// Orders is how many go to the shop in Per. 0: any number.
	Orders int64
	Per    time.Duration
	// AtOnce is how many may be at the shop.
	AtOnce int64
}

// appendMode appends the mode of a profile, as lua/reserve.lua takes it. q may be nil; else word is how the
// order counts: queued, waits or goes.
func (q *QueueOptions) appendMode(b []byte, word string, mode record.Mode) []byte {
	if q == nil {
		return append(b, mode...)
	}
	b = append(append(append(b, word...), ':'), mode...)
	for _, n := range [...]int64{q.Orders, q.Per.Milliseconds(), q.AtOnce, q.Most, q.Memory, q.Longest.Milliseconds()} {
		b = strconv.AppendInt(append(b, ':'), n, 10)
	}
	for _, word := range [...]string{q.Edge, q.Gate} {
		b = append(append(b, ':'), word...)
	}
	return b
}
