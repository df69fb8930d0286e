// Package lease gives a name to one caller at a time, over all edges: a lease in Redis that its
// holder renews. It makes races rare and tells of those that it did not prevent: a Redis that
// fails over, or steps its clock, can give the name to a second caller, and StillHeld is false
// then for the first.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// lasts is how long a lease runs after it was acquired or renewed: a name whose holder has died
	// is free after that.
	lasts = 4 * time.Second
	// renewEvery is how often it is renewed.
	renewEvery = lasts / 4
	// pollFrom and pollTo bound the pause between two tries to acquire a name; it doubles.
	pollFrom, pollTo = 5 * time.Millisecond, 80 * time.Millisecond
)

// ErrTaken says that another caller has the name.
var ErrTaken = errors.New("another edge has the lease")

// Lease is a name that one caller has. Call GiveUp once it is not needed.
type Lease struct {
	client *shard.Client
	key    string
	token  string
	stop   chan struct{}
}

// Acquire waits for a name until ctx ends; the error is ErrTaken then. If Redis does not answer,
// it returns that error at once. The lease is renewed until GiveUp. done is called once, when the
// lease uses the client no more, also after an error.
func Acquire(ctx context.Context, c *shard.Client, name string, done func()) (*Lease, error) {
	l := &Lease{client: c, key: c.LeaseKey(name), token: rand.Text(), stop: make(chan struct{})}
	for pause := pollFrom; ; pause = min(2*pause, pollTo) {
		acquired, err := l.call("acquire")
		switch {
		case err != nil: // Redis may have run it all the same
			go func() {
				defer done()
				_, _ = l.call("give_up")
			}()
			return nil, err
		case acquired:
			go func() {
				defer done()
				l.keep()
				_, _ = l.call("give_up")
			}()
			return l, nil
		}
		timer := time.NewTimer(pause/2 + mathrand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			done()
			return nil, ErrTaken
		}
	}
}

// StillHeld asks Redis whether no other caller has had the name since it was acquired. Without an
// answer it is false.
func (l *Lease) StillHeld() bool {
	held, err := l.call("renew")
	return err == nil && held
}

// GiveUp gives the name up, in the background. Call it once.
func (l *Lease) GiveUp() { close(l.stop) }

// keep renews the lease until it ends.
func (l *Lease) keep() {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			_, _ = l.call("renew") // without an answer the next one may come in time
		}
	}
}

// call runs the script once. A client that has left must not break the connection.
func (l *Lease) call(does string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.client.Timeout())
	defer cancel()
	raw, err := l.client.Eval(ctx, lua.Lease, []string{l.key}, []any{does, l.token, lasts.Milliseconds()}, 0)
	return err == nil && len(raw) == 1 && raw[0] == int64(1), err
}
