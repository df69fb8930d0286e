package combine_test

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/internal/store/combine"
)

// nameCombiner is a combiner whose requests are names.
type nameCombiner struct {
	c *combine.Combiner[string, string]
}

// newNameCombiner makes a combiner that sends batches of names.
func newNameCombiner(send func(queue string, names []string)) nameCombiner {
	return nameCombiner{combine.NewCombiner(func(queue string, batch []*combine.Ticket[string, string]) {
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
func (c nameCombiner) Do(ctx context.Context, queue, name string, weight int, settles bool) (string, error) {
	return c.c.Do(ctx, queue, &combine.Ticket[string, string]{Request: name, Weight: weight, Settles: settles})
}

// Waiting is how many requests wait to be sent.
func (c nameCombiner) Waiting() int { return c.c.Waiting() }

// Load is what there is to do.
func (c nameCombiner) Load() combine.Load { return c.c.Load() }

// Close rejects the requests that wait to be sent, and waits until the calls under way have ended.
func (c nameCombiner) Close() { c.c.Close(); c.c.Wait() }

// AwaitRoom waits until a queue is not crowded.
func (c nameCombiner) AwaitRoom(queue string, atMost time.Duration) bool {
	return c.c.AwaitRoom(queue, atMost)
}

// IsCrowded reports whether AwaitRoom would wait.
func (c nameCombiner) IsCrowded(queue string) bool { return c.c.IsCrowded(queue) }
