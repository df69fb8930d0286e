package fastpath_test

import (
	"io"
	"log"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// awaiting is a judge that wants to be asked again, twice, about a path with /await.
type awaiting struct {
	answering
	began chan struct{} // one for each wait
	end   chan struct{}
	asked *int // times that the current request was judged
	while func()
}

func (j awaiting) Judge(out []byte, r *fastpath.Request) ([]byte, bool) {
	if !strings.Contains(r.Target, "/await") {
		return j.answering.Judge(out, r)
	}
	if *j.asked++; *j.asked <= 2 {
		r.Await(func() {
			j.while()
			j.began <- struct{}{}
			<-j.end
		})
		return out, false
	}
	*j.asked = 0
	return j.answering.Judge(out, r)
}

// TestAwait lets requests wait: those that are answered here and those that go to net/http then,
// with and without others around them. Answers before them are sent at once, and meanwhile their
// connection has no more memory than they take.
func TestAwait(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for name, c := range map[string]struct {
		send  string
		want  []string
		large bool // too long to be moved
	}{
		"alone":            {send: get("/fast/await"), want: []string{`fast GET /fast/await shop ""`}},
		"a body":           {send: post("/fast/await", "body"), want: []string{`fast POST /fast/await shop "body"`}},
		"goes on":          {send: post("/fast/await/unsure", "body"), want: []string{`http POST /fast/await/unsure shop "body"`}},
		"one before":       {send: get("/fast") + get("/fast/await"), want: []string{mix[0].want, `fast GET /fast/await shop ""`}},
		"one after":        {send: get("/fast/await") + get("/fast"), want: []string{`fast GET /fast/await shop ""`, mix[0].want}},
		"goes on, another": {send: get("/fast/await/unsure") + get("/slow"), want: []string{`http GET /fast/await/unsure shop ""`, mix[1].want}},
		"two":              {send: get("/fast/await") + get("/fast/await"), want: []string{`fast GET /fast/await shop ""`, `fast GET /fast/await shop ""`}},
		"large":            {send: post("/fast/await", long), want: []string{`fast POST /fast/await shop "` + long + `"`}, large: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := awaiting{began: make(chan struct{}), end: make(chan struct{}), asked: new(int)}
			var s *served
			var in, out int
			j.while = func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				in, out = s.conns[len(s.conns)-1].Buffered()
			}
			onSockets(t, func(serving *served) { s, serving.fast.Judge = serving, j }, func(t *testing.T, s *served) {
				client := s.dial()
				// whatever a connection has done before
				for _, before := range []string{"", get("/fast"), get("/slow")} {
					if before != "" {
						client.send(before)
						client.answer()
					}
					client.send(c.send)
					for _, want := range c.want {
						if strings.Contains(want, "/await") {
							for range 2 {
								<-j.began
								if out != 0 || !c.large && in > len(c.send) {
									t.Errorf("%d bytes were sent, and it waits with buffers of %d and %d", len(c.send), in, out)
								}
								j.end <- struct{}{}
							}
						}
						client.want(want)
					}
				}
				// the rest of a request that comes after the wait
				client.send(get("/fast/await") + halfABody)
				for range 2 {
					<-j.began
					j.end <- struct{}{}
				}
				client.want(`fast GET /fast/await shop ""`)
				client.send("dy")
				client.want(`fast POST /fast shop "body"`)
			})
		})
	}
}

// TestPartOfARequestAtRest lets more come behind a request that waits than its memory holds.
func TestPartOfARequestAtRest(t *testing.T) {
	j := awaiting{began: make(chan struct{}), end: make(chan struct{}), asked: new(int), while: func() {}}
	onSockets(t, func(s *served) { s.fast.Judge = j }, func(t *testing.T, s *served) {
		client := s.dial()
		next := post("/fast", strings.Repeat("y", 6000))
		client.send(get("/fast/await") + next[:300])
		for range 2 {
			<-j.began
			j.end <- struct{}{}
		}
		client.want(`fast GET /fast/await shop ""`)
		client.send(next[300:])
		client.want(`fast POST /fast shop "` + strings.Repeat("y", 6000) + `"`)
	})
}

// panicking is a judge that fails.
type panicking struct{ answering }

func (panicking) Judge([]byte, *fastpath.Request) ([]byte, bool) { panic("the judge fails") }

// TestJudgePanics closes the connection, as net/http does if a handler panics. The process lives.
func TestJudgePanics(t *testing.T) {
	onSockets(t, func(s *served) {
		s.fast.Judge, s.http.ErrorLog = panicking{}, log.New(io.Discard, "", 0)
	}, func(t *testing.T, s *served) {
		c := s.dial()
		c.send(get("/fast"))
		if got := c.closed(); got != "" {
			t.Errorf("hears %q", got)
		}
		c = s.dial()
		c.send(get("/slow"))
		c.want(mix[1].want)
	})
}
