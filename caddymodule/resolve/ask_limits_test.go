package resolve

import (
	"fmt"
	"testing"
	"time"
)

// Many clients that name payments which the provider does not know use up their common share, and keep a client
// waiting of which it has known one no longer than its own share does.
func TestStrangersShareTheQuota(t *testing.T) {
	l, now := newAskLimits(), time.Unix(1_790_000_000, 0)
	ask := func(client string) int {
		done, no := l.begin(client, now)
		if no != nil {
			return no.status
		}
		done()
		return 0
	}
	l.prove("provider")
	asked := 0
	for i := range 1000 {
		if ask(fmt.Sprint("stranger ", i)) == 0 {
			asked++
		}
	}
	if asked != strangersBurst {
		t.Errorf("1000 strangers had %d questions, want %d", asked, strangersBurst)
	}
	for range askBurst {
		if status := ask("provider"); status != 0 {
			t.Fatalf("the provider: %d", status)
		}
	}
	if status := ask("provider"); status != 429 {
		t.Errorf("beyond its share: %d", status)
	}
	now = now.Add(time.Second)
	if ask("provider") != 0 || ask("another stranger") != 0 {
		t.Error("a second later there is room")
	}
	for i := range 2 * maxProven {
		l.prove(fmt.Sprint("client ", i))
	}
	if len(l.proven) != maxProven {
		t.Errorf("%d clients are remembered", len(l.proven))
	}
}

// As many questions as there is room for are under way.
func TestQuestionsAtOnce(t *testing.T) {
	l, now := newAskLimits(), time.Now()
	var all []func()
	for range askAtOnce {
		done, no := l.begin("client", now)
		if no != nil {
			t.Fatal(no)
		}
		all = append(all, done)
	}
	if _, no := l.begin("client", now); no == nil || no.status != 503 {
		t.Errorf("one more: %+v", no)
	}
	all[0]()
	if _, no := l.begin("client", now); no != nil {
		t.Errorf("one has ended: %+v", no)
	}
}
