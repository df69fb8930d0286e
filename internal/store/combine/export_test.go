package combine

import (
	"context"
	"time"
)

// NameCombiner is a combiner whose requests are names.
type NameCombiner struct{ c *Combiner[string, string] }

// NewNameCombiner makes a combiner that sends batches of names.
func NewNameCombiner(send func(queue string, names []string)) NameCombiner {
	return NameCombiner{NewCombiner(func(queue string, batch []*Ticket[string, string]) {
		names := make([]string, len(batch))
		for i, t := range batch {
			names[i] = t.Request
		}
		send(queue, names)
		for _, t := range batch {
			t.Answer(t.Request, nil)
		}
	})}
}

// Do requests a name, as an attempt or as an operation that settles one.
func (c NameCombiner) Do(ctx context.Context, queue, name string, weight int, settles bool) (string, error) {
	return c.c.Do(ctx, queue, &Ticket[string, string]{Request: name, Weight: weight, Settles: settles})
}

// Waiting is how many requests wait to be sent.
func (c NameCombiner) Waiting() int { return c.c.Waiting() }

// Load is what there is to do.
func (c NameCombiner) Load() Load { return c.c.Load() }

// Close rejects all waiting requests and waits for what is under way.
func (c NameCombiner) Close() { c.c.Close(); c.c.Wait() }

// AwaitRoom waits until a queue is not crowded.
func (c NameCombiner) AwaitRoom(queue string, atMost time.Duration) bool {
	return c.c.AwaitRoom(queue, atMost)
}

// IsCrowded reports whether AwaitRoom would wait.
func (c NameCombiner) IsCrowded(queue string) bool { return c.c.IsCrowded(queue) }
