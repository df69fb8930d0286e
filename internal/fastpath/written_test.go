package fastpath_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// writes notes what is written at once, and each deadline that is set.
type writes struct {
	pieces
	sizes       []int
	read, write []time.Time
}

func (w *writes) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return len(b), nil
}

func (w *writes) SetReadDeadline(t time.Time) error  { w.read = append(w.read, t); return nil }
func (w *writes) SetWriteDeadline(t time.Time) error { w.write = append(w.write, t); return nil }

// slow arrives one request at a time, each some time after the one before. It is for a bubble of
// synctest, whose clock the sleep moves on: no real time passes.
type slow struct {
	*writes
	every time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	time.Sleep(s.every)
	return s.writes.Read(b)
}

// TestAnswersAreWrittenInParts bounds what waits to be written together.
func TestAnswersAreWrittenInParts(t *testing.T) {
	const times = 400
	text := strings.Repeat(get("/fast"), times)
	w := &writes{pieces: pieces{rest: []byte(text), size: len(text)}}
	c := (&fastpath.Server{Judge: long400{}}).Wrap(w)
	c.Follow(http.StateNew)
	_, _ = c.Read(make([]byte, 100))
	all := 0
	for _, size := range w.sizes {
		if all += size; size > 32<<10+1000 {
			t.Errorf("%d bytes were written at once", size)
		}
	}
	if want := times * 400; all != want || len(w.sizes) > times/20 {
		t.Errorf("%d bytes of %d were written, at %d times", all, want, len(w.sizes))
	}
}

// long400 answers with 400 bytes.
type long400 struct{ answering }

func (long400) Judge(out []byte, _ *fastpath.Request) ([]byte, bool) {
	return append(out, strings.Repeat("x", 400)...), true
}

// TestDeadlinesOfAnswers bounds the writing of answers and the waiting for the next request,
// and sets a deadline again only when a sixteenth of it has gone by.
func TestDeadlinesOfAnswers(t *testing.T) {
	for _, c := range []struct{ idle, write, wantIdle, wantWrite time.Duration }{
		{16 * time.Second, 160 * time.Second, 16 * time.Second, 160 * time.Second},
		{32 * time.Second, 0, 32 * time.Second, time.Minute},
		{0, 16 * time.Second, 0, 16 * time.Second},
	} {
		t.Run(fmt.Sprint(c.idle, c.write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const times = 50
				began, every := time.Now(), 100*time.Millisecond
				text := strings.Repeat(get("/fast"), times)
				w := &writes{pieces: pieces{rest: []byte(text), size: len(get("/fast"))}}
				conn := (&fastpath.Server{Judge: answering{}, Timeouts: fastpath.Timeouts{Idle: c.idle, Write: c.write}}).Wrap(&slow{w, every})
				conn.Follow(http.StateNew)
				_, _ = conn.Read(make([]byte, 100))
				if len(w.sizes) != times {
					t.Fatalf("%d answers", len(w.sizes))
				}
				last := began.Add((times + 1) * every)
				for name, d := range map[string]struct {
					set  []time.Time
					want time.Duration
				}{"idle": {w.read, c.wantIdle}, "write": {w.write, c.wantWrite}} {
					if d.want == 0 {
						if len(d.set) > 0 {
							t.Errorf("%s: %v", name, d.set)
						}
						continue
					}
					slack := d.want / 16
					if least, most := 1+int((times-2)*every/(slack+every)), 1+int(times*every/slack); len(d.set) < least || len(d.set) > most {
						t.Errorf("%s: set %d times, not %d to %d times", name, len(d.set), least, most)
					}
					for i, at := range d.set {
						if !at.Before(last.Add(d.want+slack+1)) || at.Before(began.Add(d.want)) || i > 0 && at.Sub(d.set[i-1]) < slack {
							t.Errorf("%s: deadlines %v after the beginning", name, at.Sub(began))
						}
					}
					if end := d.set[len(d.set)-1]; end.Sub(last.Add(-every)) < d.want {
						t.Errorf("%s: the last deadline is %v after the last request", name, end.Sub(last.Add(-every)))
					}
				}
			})
		})
	}
}

// waiting is a judge that waits for something, and sends before what it has answered.
type waiting struct {
	answering
	wait chan struct{}
}

func (j waiting) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	if strings.HasSuffix(r.Target, "/wait") {
		out = r.Flush(out)
		<-j.wait
	}
	return j.answering.Judge(out, r)
}

// TestFlush sends the answers to earlier requests before a judge waits, and then its own.
func TestFlush(t *testing.T) {
	wait := make(chan struct{})
	onSockets(t, func(s *served) { s.fast.Judge = waiting{wait: wait} }, func(t *testing.T, s *served) {
		c := s.dial()
		c.send(get("/fast") + get("/fast/wait") + get("/fast"))
		c.want(mix[0].want)
		wait <- struct{}{}
		c.want(`fast GET /fast/wait shop ""`, mix[0].want)
		c.send(get("/fast/wait")) // with nothing before it
		wait <- struct{}{}
		c.want(`fast GET /fast/wait shop ""`)
	})
}
