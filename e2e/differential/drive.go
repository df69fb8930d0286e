package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/token"
)

// drive sends requests until so many have been sent. What the gate refuses goes to one
// shop's site, in turn: it is the same gate everywhere. What it forwards goes to all.
func drive(ctx context.Context, l *launcher, g *gate, shops []*shop, o options, t *tally) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next, sent atomic.Int64
	var all sync.WaitGroup
	for range o.workers {
		all.Go(func() {
			lanes := newLanes(shops)
			defer lanes.close()
			for ctx.Err() == nil && sent.Load() < int64(o.requests) {
				i := uint64(next.Add(1) - 1)
				n, err := t.one(g, shops, lanes, o, i)
				sent.Add(int64(n))
				if err != nil {
					cancel()
				}
			}
		})
	}
	all.Go(func() { t.progress(ctx, l, o, &sent) })
	all.Wait()
}

// progress prints how far the run is, and ends it if a process has ended.
func (t *tally) progress(ctx context.Context, l *launcher, o options, sent *atomic.Int64) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		done := sent.Load()
		if done >= int64(o.requests) {
			return
		}
		if err := l.alive(); err != nil {
			t.fail(err)
			fmt.Fprintln(os.Stderr, err)
		}
		if n%30 == 0 {
			fmt.Printf("%d of %d requests\n", done, o.requests)
		}
	}
}

func (t *tally) fail(err error) {
	t.Lock()
	defer t.Unlock()
	t.trouble = errors.Join(t.trouble, err)
}

// one sends request i and compares. It returns how often it was sent.
func (t *tally) one(g *gate, shops []*shop, lanes lanes, o options, i uint64) (sent int, err error) {
	q, rng := generate(o.seed, i)
	raw := q.bytes(rng)
	t.Lock()
	t.generated++
	t.Unlock()
	for n := range shops {
		s := shops[(int(i%uint64(len(shops)))+n)%len(shops)]
		got, ok, err := lanes[s.name].exchange(q, raw)
		if err != nil {
			t.fail(fmt.Errorf("request %d to %s: %w", i, s.name, err))
			return sent, err
		}
		sent++
		c, wrong := g.judge(q, ok, &got)
		t.note(s, q.route, c, got.reason)
		if wrong != "" {
			return sent, t.report(g, shops, s, q, o.seed, i, raw, &got, wrong, o.keep)
		}
		if !ok || !got.reached {
			return sent, nil
		}
	}
	return sent, nil
}

// judge says what became of a request.
func (g *gate) judge(q *request, ok bool, got *response) (c count, wrong string) {
	c.sent = 1
	switch {
	case !ok:
		c.closed = 1
	case !got.reached && got.status >= http.StatusBadGateway && got.reason == "":
		c.unanswered = 1 // forwarded, and the shop gave no answer
	case !got.reached:
		c.refused = 1
	case got.answer == nil:
		c.forwarded, c.rejected = 1, 1
	default:
		c.forwarded = 1
		claims, err := g.claims(got.answer)
		if err != nil {
			return c, "the token is not the gate's: " + err.Error()
		}
		var read bool
		if wrong, read = compare(q.route, q, got.answer, claims); read {
			c.agreed = 1
		} else {
			c.unread = 1
		}
	}
	return c, wrong
}

// claims are those of the token that the shop got; nil: it got none. A token that expired
// meanwhile counts: on a busy machine answers come later than holds last, and what a token
// says does not change.
func (g *gate) claims(a *answer) (*token.Claims, error) {
	if a.Token == "" {
		return nil, nil
	}
	claims, err := g.verifier.Verify(a.Token, token.Expect{AnySubject: true})
	if errors.Is(err, token.ErrExpired) {
		err = nil
	}
	return claims, err
}

// lanes are one worker's connections.
type lanes map[string]*lane

func newLanes(shops []*shop) lanes {
	all := make(lanes, len(shops))
	for _, s := range shops {
		all[s.name] = &lane{port: s.site}
	}
	return all
}

func (all lanes) close() {
	for _, l := range all {
		l.close()
	}
}
