package h2_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// postpone makes the Judge postpone requests whose path begins with /no/later, until judge is called.
func (s *side) postpone() (judge func()) {
	later := true
	s.refuser.postpones = func(r *fastpath.Request) bool { return later && strings.HasPrefix(r.Target, "/no/later") }
	return func() {
		s.refuser.mu.Lock()
		later = false
		waits := s.refuser.waits
		s.refuser.waits = nil
		s.refuser.mu.Unlock()
		for _, wake := range waits {
			wake()
		}
		synctest.Wait()
	}
}

func (s *side) waiting() int {
	s.refuser.mu.Lock()
	defer s.refuser.mu.Unlock()
	return len(s.refuser.waits)
}

// Requests that the Judge postpones wait beside each other, and delay nothing else.
func TestPostponedRequestsWaitTogether(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		came := time.Now()
		for id := uint32(1); id < 2*64; id += 4 {
			s.send(w.request(id, true, "GET", fmt.Sprint("/no/later/", id)))
			s.send(w.request(id+2, false, "POST", fmt.Sprint("/no/later/", id+2)))
			_ = w.fr.WriteData(id+2, false, []byte("12"))
			_ = w.fr.WriteData(id+2, true, []byte("34"))
			s.send(w.taken())
		}
		if n := s.waiting(); n != 64 {
			t.Fatalf("%d requests wait, want 64", n)
		}
		s.send(w.request(201, true, "GET", "/no"))
		_ = w.fr.WritePing(false, [8]byte{1})
		s.send(w.taken())
		s.want(t, "1 fast, 0 slow")
		if v := s.read(t); v.pings != 1 {
			t.Error("the connection waits, too")
		}
		time.Sleep(10 * time.Second) // their bodies have come
		_ = w.fr.WritePing(false, [8]byte{1})
		s.send(w.taken())
		s.want(t, "1 fast, 0 slow")
		judge()
		s.want(t, "65 fast, 0 slow")
		v := s.read(t)
		for id := uint32(1); id < 2*64; id += 4 {
			if !strings.Contains(v.streams[id], fmt.Sprintf("GET /no/later/%d ", id)) || !strings.Contains(v.streams[id+2], `"1234"`) {
				t.Fatalf("streams %d and %d: %q, %q", id, id+2, v.streams[id], v.streams[id+2])
			}
		}
		slices.SortFunc(s.refuser.since, time.Time.Compare)
		if last := s.refuser.since[64]; !last.Equal(came) {
			t.Errorf("a request that came at %v is judged as of %v", came, last)
		}
		if len(s.refuser.mixed) > 0 {
			t.Errorf("judged again with what is another's: %q", s.refuser.mixed)
		}
	})
}

// The Judge may postpone a request again.
func TestPostponedAgain(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		s.send(w.request(1, true, "GET", "/no/later"))
		for range 3 {
			s.refuser.mu.Lock()
			wake := s.refuser.waits[len(s.refuser.waits)-1]
			s.refuser.mu.Unlock()
			wake()
			synctest.Wait()
		}
		if n := s.waiting(); n != 4 {
			t.Errorf("it was postponed %d times, want 4", n)
		}
		judge()
		s.want(t, "1 fast, 0 slow")
	})
}

// A request that goes on takes older ones along that wait, and one that was postponed may go on.
func TestPostponedRequestsGoOn(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		s.send(w.request(1, true, "GET", "/no/later"))
		s.send(w.request(3, false, "POST", "/no/later"))
		_ = w.fr.WriteData(3, true, []byte("body"))
		s.send(w.taken())
		s.send(w.request(5, true, "GET", "/yes"))
		s.send(w.request(7, false, "POST", "/no/later"))
		_ = w.fr.WriteData(7, true, []byte("pass"))
		s.send(w.taken())
		s.want(t, "0 fast, 3 slow")
		judge()
		s.want(t, "0 fast, 4 slow")
		v := s.read(t)
		for id, text := range map[uint32]string{1: "GET /no/later", 3: `"body"`, 5: "GET /yes", 7: `"pass"`} {
			if !strings.Contains(v.streams[id], text) {
				t.Errorf("stream %d: %q", id, v.streams[id])
			}
		}
	})
}

// A body that does not come in time delays no request that was postponed, nor does it hurry one. A
// request that goes on leaves no later one behind.
func TestPostponedBesideABody(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.postpone()
		s.send(w.request(1, false, "POST", "/no"))
		s.send(w.request(3, true, "GET", "/no/later"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.want(t, "0 fast, 1 slow")
		_ = w.fr.WriteData(1, true, []byte("late"))
		s.send(w.taken())
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		s.send(w.request(1, false, "POST", "/no"))
		s.send(w.request(3, false, "POST", "/no/later"))
		_ = w.fr.WriteData(3, true, []byte("pass"))
		s.send(w.taken())
		s.send(w.request(5, true, "GET", "/no/later"))
		judge()
		s.want(t, "1 fast, 2 slow")
		_ = w.fr.WriteData(1, true, []byte("late"))
		s.send(w.taken())
	})
}

// What a client sends on the stream of a postponed request is treated as the server treats it.
func TestFramesOfPostponedRequests(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		before := s.read(t).back
		for id := uint32(1); id < 9; id += 2 {
			s.send(w.request(id, false, "POST", "/no/later"))
			_ = w.fr.WriteData(id, true, []byte(strings.Repeat("x", 5000)))
			s.send(w.taken())
		}
		_ = w.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = w.fr.WriteWindowUpdate(3, 1000)
		s.send(w.taken())
		judge()
		s.want(t, "3 fast, 0 slow")
		v := s.read(t)
		if v.streams[1] != "" || v.back-before < 4*5000-4096 {
			t.Errorf("stream 1: %q, %d bytes given back", v.streams[1], v.back-before)
		}
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) { // DATA behind the end of a request
		judge := s.postpone()
		s.send(w.request(1, false, "POST", "/no/later"))
		_ = w.fr.WriteData(1, true, []byte("12"))
		s.send(w.taken())
		_ = w.fr.WriteData(1, true, []byte("34"))
		s.send(w.taken())
		judge()
		s.want(t, "0 fast, 1 slow")
		if v := s.read(t); !strings.Contains(v.streams[1], "STREAM_CLOSED") && !strings.Contains(v.streams[1], `"12"`) || strings.Contains(v.streams[1], "34") {
			t.Errorf("%q", v.streams[1])
		}
	})
}

// Requests that wait when the server stops are refused, and the client may send them again.
func TestPostponedAtAShutdown(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		judge := s.postpone()
		s.send(w.request(1, true, "GET", "/yes"))
		s.send(w.request(3, true, "GET", "/no/later"))
		s.send(w.request(5, true, "GET", "/no"))
		go func() { _ = s.http.Shutdown(context.Background()) }()
		synctest.Wait()
		s.refuser.stops()
		judge()
		if v := s.read(t); v.streams[3] != "RST REFUSED_STREAM\n" || v.last != 5 {
			t.Errorf("stream 3: %q, GOAWAY with %d", v.streams[3], v.last)
		}
		s.want(t, "1 fast, 1 slow")
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) { // or go on, if nothing is answered any more
		judge := s.postpone()
		s.send(w.request(1, true, "GET", "/no/later"))
		s.refuser.stops()
		judge()
		s.want(t, "0 fast, 1 slow")
	})
}

// Requests that were postponed are bounded like all that wait.
func TestPostponedRequestsAreBounded(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.postpone()
		var all []byte
		for id := uint32(1); id < 2*250; id += 2 {
			all = append(all, w.request(id, true, "GET", "/no/later")...)
		}
		s.send(all)
		s.want(t, "0 fast, 0 slow")
		s.send(w.request(501, true, "GET", "/no/later")) // more than the server allows
		if got := s.answers(); !strings.HasPrefix(got, "0 fast, 25") {
			t.Error(got)
		}
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.postpone()
		for id := uint32(1); id < 2*10; id += 2 {
			s.send(w.request(id, false, "POST", "/no/later"))
			_ = w.fr.WriteData(id, true, []byte(strings.Repeat("x", 15_000)))
			s.send(w.taken())
		}
		s.want(t, "0 fast, 9 slow")
	})
}

// A connection that ends is woken without harm.
func TestPostponedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := open(true), newWriter()
		synctest.Wait()
		judge := s.postpone()
		s.send(w.hello())
		s.send(w.request(1, true, "GET", "/no/later"))
		s.close()
		judge()
		s.want(t, "0 fast, 0 slow")
	})
}
