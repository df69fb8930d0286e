package queue_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// So many clients may wait for news at an edge, and so many of one order; those that have left make
// room, once.
func TestPolls(t *testing.T) {
	q := quiet(t, "A", stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 10), one).queue
	q.MostPolls(6)
	poll := func(id string) func() {
		leave, _ := q.Poll("s", id)
		return leave
	}
	var of1 []func()
	for range 4 {
		of1 = append(of1, poll("r1"))
	}
	if of1[3] == nil || poll("r1") != nil {
		t.Error("more or fewer than four clients wait for news of one order")
	}
	if a, b := poll("r2"), poll("r3"); a == nil || b == nil {
		t.Error("there is room, and a client does not wait")
	}
	if poll("r4") != nil {
		t.Error("more clients wait than may")
	}
	of1[0]()
	of1[0]()
	if poll("r1") == nil {
		t.Error("one has left, and another one does not wait")
	}
	if poll("r4") != nil {
		t.Error("one has left twice")
	}
}
