package notices_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/notices"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

func open(t *testing.T, b redistest.Backend) *notices.Notices {
	return notices.New(stocktest.OpenStore(t, stocktest.Options(b)).Shard(), 0)
}

func notice(text string) *notices.Notice {
	return &notices.Notice{Kind: "stock", Sale: "s", State: "sold_out", Text: text}
}

func raise(t *testing.T, n *notices.Notices, about, from, to string, what *notices.Notice) bool {
	t.Helper()
	ok, err := n.Raise(stocktest.Soon(t), about, from, to, what)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// take waits until a message is due.
func take(t *testing.T, n *notices.Notices) (m *notices.Digest) {
	t.Helper()
	stocktest.Eventually(t, "a message is due", func() bool {
		var err error
		if m, _, err = n.Take(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		return m != nil
	})
	return m
}

func texts(m *notices.Digest) string {
	var all []string
	for _, n := range m.Notices {
		all = append(all, n.Text)
	}
	return strings.Join(all, ", ")
}

// Several edges see the same at the same time: operators hear it once, and again when it changes.
func TestOnceOverAllEdges(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		edges := []*notices.Notices{open(t, b), open(t, b), open(t, b)}
		for _, step := range []struct{ from, to, text string }{{"", "open", "it is open"}, {"open", "paused", "it is paused"}, {"paused", "", "it is over"}} {
			var told atomic.Int32
			var all sync.WaitGroup
			for _, n := range edges {
				all.Go(func() {
					if raise(t, n, "sale s", step.from, step.to, notice(step.text)) {
						told.Add(1)
					}
				})
			}
			all.Wait()
			if told.Load() != 1 {
				t.Errorf("%q was told %d times", step.text, told.Load())
			}
		}
		m := take(t, edges[0])
		if got := texts(m); got != "it is open, it is paused, it is over" {
			t.Errorf("what arose together came as %q", got)
		}
		if m.Notices[0].At.IsZero() || m.Notices[0].Kind != "stock" || m.Lost != 0 {
			t.Errorf("%+v", m)
		}
	})
}

// A notice that has just arisen waits for others.
func TestGrouped(t *testing.T) {
	b := redistest.Start(t)
	n := notices.New(stocktest.OpenStore(t, stocktest.Options(b)).Shard(), 3*time.Second)
	raise(t, n, "a", "", "1", notice("one"))
	if m, w, err := n.Take(stocktest.Soon(t)); m != nil || err != nil || w.Waiting != 1 {
		t.Errorf("%+v, %+v, %v", m, w, err)
	}
	raise(t, n, "b", "", "1", notice("two"))
	if m := take(t, n); texts(m) != "one, two" {
		t.Error(texts(m))
	}
}

// A state that is noted only is told to no one.
func TestNotedOnly(t *testing.T) {
	n := open(t, redistest.Start(t))
	if !raise(t, n, "sale s", "", "closed", nil) || raise(t, n, "sale s", "", "open", notice("late")) {
		t.Error("what was noted is not known")
	}
	if w, err := n.Waiting(stocktest.Soon(t)); err != nil || w.Waiting != 0 {
		t.Errorf("%+v, %v", w, err)
	}
}

// The edge that sends dies between the answer and its note: another one sends the same message, whatever has arisen
// since, and no edge sends what another one has.
func TestTheSenderDies(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first, second := open(t, b), open(t, b)
		raise(t, first, "a", "", "1", notice("one"))
		raise(t, first, "b", "", "1", notice("two"))
		m := take(t, first)
		raise(t, second, "c", "", "1", notice("three"))
		again := take(t, second)
		if again.ID != m.ID || texts(again) != texts(m) {
			t.Errorf("%s %q came, and then %s %q", m.ID, texts(m), again.ID, texts(again))
		}
		if err := second.Sent(stocktest.Soon(t), again); err != nil {
			t.Fatal(err)
		}
		next := take(t, second)
		if err := first.Sent(stocktest.Soon(t), m); err != nil { // it was only slow
			t.Fatal(err)
		}
		if still := take(t, second); texts(next) != "three" || still.ID != next.ID {
			t.Errorf("next is %q, and then %q", texts(next), texts(still))
		}
	})
}

// While the receiver is away, a bounded number of notices waits. What found no room is counted, and the next message
// says so; the one that is being sent stays the same.
func TestTheBound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		n := open(t, b)
		raise(t, n, "first", "", "1", notice("first"))
		sending := take(t, n)
		for i := range notices.MaxWaiting + 49 {
			raise(t, n, fmt.Sprint(i), "", "1", notice(fmt.Sprint("n", i)))
		}
		if w, err := n.Waiting(stocktest.Soon(t)); err != nil || w.Waiting != notices.MaxWaiting {
			t.Errorf("%+v wait, %v", w, err)
		}
		if same := take(t, n); same.ID != sending.ID || same.Lost != 0 {
			t.Errorf("%+v became %+v", sending, same)
		}
		if err := n.Sent(stocktest.Soon(t), sending); err != nil {
			t.Fatal(err)
		}
		m := take(t, n)
		if m.Lost != 50 || m.Notices[0].Text != "n50" {
			t.Errorf("%d are said to be lost, and it goes on with %q", m.Lost, m.Notices[0].Text)
		}
		if err := n.Refused(stocktest.Soon(t), m); err != nil {
			t.Fatal(err)
		}
		if next := take(t, n); next.Lost != 50+int64(len(m.Notices)) {
			t.Errorf("%d are said to be lost after a message of %d was refused", next.Lost, len(m.Notices))
		}
	})
}

// A notice that is a day old is no news: it is counted.
func TestOldNotices(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		n, c := open(t, b), b.Client()
		raise(t, n, "a", "", "1", notice("one"))
		raise(t, n, "b", "", "1", notice("two"))
		key := c.Keys(stocktest.Soon(t), "*{notices}:waiting").Val()[0]
		old := c.ZRange(stocktest.Soon(t), key, 0, 0).Val()[0]
		words := strings.SplitN(old, " ", 3)
		c.ZRem(stocktest.Soon(t), key, old)
		c.ZAdd(stocktest.Soon(t), key, redis.Z{Score: 1, Member: words[0] + " 1700000000000 " + words[2]})
		if w, err := n.Waiting(stocktest.Soon(t)); err != nil || w.Waiting != 2 {
			t.Errorf("%+v, %v", w, err)
		}
		if m := take(t, n); texts(m) != "two" || m.Lost != 1 {
			t.Errorf("%q, %d lost", texts(m), m.Lost)
		}
	})
}

// A message is short enough for chats that bound messages, and a long text is cut.
func TestMessagesAreShort(t *testing.T) {
	n := open(t, redistest.Start(t))
	for i := range 20 {
		raise(t, n, fmt.Sprint(i), "", "1", notice(strings.Repeat("é", 2000)))
	}
	m := take(t, n)
	if length := len(texts(m)); length > 2000 || len(m.Notices) != 2 || !strings.HasSuffix(m.Notices[0].Text, "é…") {
		t.Errorf("%d notices with %d bytes", len(m.Notices), length)
	}
}

// What another client has put there is an error, and a key that was deleted is no reason to stop.
func TestSpoiled(t *testing.T) {
	b := redistest.Start(t)
	n := open(t, b)
	raise(t, n, "a", "", "1", notice("one"))
	m := take(t, n)
	c := b.Client()
	for _, key := range c.Keys(stocktest.Soon(t), "*notices*").Val() {
		c.Del(stocktest.Soon(t), key)
	}
	if err := n.Sent(stocktest.Soon(t), m); err != nil {
		t.Error(err)
	}
	raise(t, n, "a", "", "1", notice("two"))
	if again := take(t, n); again.ID == m.ID {
		t.Error("two messages have one id")
	}
}
