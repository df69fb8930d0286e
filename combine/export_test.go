package combine

import (
	"context"
)

// Combiner is one that is asked for names.
type NameCombiner struct{ c *Combiner[string, string] }

// NewCombiner makes one that sends batches of names.
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

// Do asks for a name, as an attempt or as something that settles one.
func (c NameCombiner) Do(ctx context.Context, queue, name string, weight int, settles bool) (string, error) {
	return c.c.Do(ctx, queue, &Ticket[string, string]{Request: name, Weight: weight, Settles: settles})
}

// Waiting is how many wait to be sent.
func (c NameCombiner) Waiting() int { return c.c.Waiting() }

// Close turns everybody away and waits for what is under way.
func (c NameCombiner) Close() { c.c.Close(); c.c.Wait() }
