package h2_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// alone opens a shared connection in a bubble and says hello with these bytes.
func alone(t *testing.T, hello func(*writer) []byte, test func(t *testing.T, s *side, w *writer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, w := open(true), newWriter()
		synctest.Wait()
		if hello == nil {
			s.send(w.hello())
		} else {
			s.send(hello(w))
		}
		test(t, s, w)
		s.close()
	})
}

// answers returns how many the fast path and the server have answered.
func (s *side) answers() string {
	s.refuser.mu.Lock()
	defer s.refuser.mu.Unlock()
	return fmt.Sprintf("%d fast, %d slow", s.refuser.fast, s.refuser.slow)
}

func (s *side) want(t *testing.T, want string) {
	t.Helper()
	if got := s.answers(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// small says hello without a window for the connection beyond that of the protocol.
func small(settings ...http2.Setting) func(w *writer) []byte {
	return func(w *writer) []byte {
		_ = w.fr.WriteSettings(settings...)
		_ = w.fr.WriteSettingsAck()
		return w.taken()
	}
}

// Answers spend only credit that was withheld from the server.
func TestCredit(t *testing.T) {
	alone(t, small(), func(t *testing.T, s *side, w *writer) {
		s.send(w.request(1, true, "GET", "/no"))
		s.want(t, "0 fast, 1 slow")
		_ = w.fr.WriteWindowUpdate(0, 1024+60)
		s.send(w.taken())
		for id := uint32(3); id < 11; id += 2 {
			s.send(w.request(id, true, "GET", "/no"))
		}
		s.want(t, "3 fast, 2 slow") // of 26 bytes each, with 1024 to spare
	})
}

// What has come with the preface is answered, even if nothing more comes, and at the right time.
func TestWhatComesWithThePreface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter()
		body := strings.Repeat("x", 15_000) // more than the input buffer has room for
		rest := append(w.hello(), w.request(1, true, "GET", "/no")...)
		for id := uint32(3); id < 9; id += 2 {
			rest = append(rest, w.request(id, false, "POST", "/no")...)
			_ = w.fr.WriteData(id, true, []byte(body))
			rest = append(rest, w.taken()...)
		}
		s := openWith(true, rest)
		synctest.Wait()
		s.want(t, "4 fast, 0 slow")
		v := s.read(t)
		if len(v.streams) != 4 || !strings.Contains(v.streams[7], "END") {
			t.Errorf("%v", v.streams)
		}
		if late := time.Since(s.refuser.at).Abs(); late > time.Second {
			t.Errorf("the Judge was asked at %v", s.refuser.at)
		}
		s.close()
	})
}

// A client that does not read what the server writes is read all the same.
func TestReadingGoesOnWhileTheClientDoesNotRead(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		gate := make(chan struct{})
		s.gate.Store(&gate)
		for id := uint32(1); id < 7; id += 2 {
			s.send(w.request(id, true, "GET", "/yes"))
		}
		before := s.read(t)
		for id := uint32(7); id < 17; id += 2 {
			s.send(w.request(id, true, "GET", "/no"))
		}
		s.want(t, "5 fast, 3 slow")
		if len(before.streams) > 2 {
			t.Errorf("the client has read %d answers: this case no longer shows what it is for", len(before.streams))
		}
		close(gate)
		synctest.Wait()
		if v := s.read(t); len(v.streams) != 8 || strings.Count(fmt.Sprint(v.streams), "END") != 8 {
			t.Errorf("%v", v.streams)
		}
	})
}

// A stream's window counts, as it was announced and as it was enlarged.
func TestStreamWindow(t *testing.T) {
	window := http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}
	alone(t, func(w *writer) []byte { return w.hello(window) }, func(t *testing.T, s *side, w *writer) {
		s.send(w.request(3, true, "GET", "/no"))
		s.want(t, "0 fast, 1 slow")
		s.send(w.request(5, false, "POST", "/no"))
		_ = w.fr.WriteWindowUpdate(5, 1020)
		_ = w.fr.WriteData(5, true, []byte("1"))
		s.send(w.taken())
		s.want(t, "1 fast, 1 slow")
		s.send(w.request(7, false, "POST", "/no"))
		_ = w.fr.WriteWindowUpdate(7, 1000)
		_ = w.fr.WriteData(7, true, []byte("pass"))
		s.send(w.taken())
		s.want(t, "1 fast, 2 slow")
		if v := s.read(t); !strings.Contains(v.streams[7], "END") {
			t.Errorf("the window of stream 7 was lost: %q", v.streams[7])
		}
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) { // before the server has acknowledged it
		s.send(w.request(1, true, "GET", "/no"))
		_ = w.fr.WriteSettings(window)
		s.send(append(w.taken(), w.request(3, true, "GET", "/no")...))
		s.want(t, "1 fast, 1 slow")
	})
}

// The server gets the credit that was withheld when it needs it.
func TestServerGetsCreditBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got [2]int64
		for i, wraps := range []bool{true, false} {
			s, w := open(wraps), newWriter()
			_ = w.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
			_ = w.fr.WriteSettingsAck()
			_ = w.fr.WriteWindowUpdate(0, 2<<20)
			s.send(w.taken())
			s.send(w.request(1, true, "GET", "/no"))
			for id := uint32(3); id < 2*160; id += 2 { // 2.5 MB are wanted, 2.1 allowed
				s.send(w.request(id, false, "POST", "/yes"))
				_ = w.fr.WriteData(id, true, []byte(strings.Repeat("x", 16_000)))
				s.send(w.taken())
			}
			if wraps {
				s.want(t, "1 fast, 159 slow")
			}
			got[i] = s.read(t).data
			s.close()
		}
		if got[0] != got[1] || got[1] != 2<<20+65535 {
			t.Errorf("the server could send %d bytes, want %d", got[0], got[1])
		}
	})
}

// A request whose body does not come goes on to the server after a while.
func TestBodyIsNotAwaitedLong(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.send(w.request(1, false, "POST", "/no"))
		s.want(t, "0 fast, 0 slow")
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		s.want(t, "0 fast, 0 slow")
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		s.want(t, "0 fast, 1 slow")
		_ = w.fr.WriteData(1, true, []byte("late"))
		s.send(w.taken())
		if v := s.read(t); !strings.Contains(v.streams[1], "late") {
			t.Errorf("%q", v.streams[1])
		}
	})
}

// Now and then the server gets a request, so that the connection does not seem idle to it.
func TestServerKnowsThatItIsNotIdle(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		for id := uint32(1); id < 200; id += 2 {
			time.Sleep(10 * time.Second)
			s.send(w.request(id, true, "GET", "/no"))
		}
		if v := s.read(t); v.gone != "" || len(v.streams) != 100 {
			t.Errorf("%d answers, then %q", len(v.streams), v.gone)
		}
		s.want(t, "94 fast, 6 slow")
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if v := s.read(t); v.gone == "" {
			t.Error("the connection is idle and open")
		}
	})
}

// The GOAWAY of a shutdown names the last stream that was answered. Requests that wait are
// refused, and later ones are not answered.
func TestShutdown(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.send(w.request(1, true, "GET", "/yes"))
		s.send(w.request(3, false, "POST", "/no"))
		s.send(w.request(5, true, "GET", "/no"))
		go func() { _ = s.http.Shutdown(context.Background()) }()
		synctest.Wait()
		s.refuser.stops()
		v := s.read(t)
		if !strings.HasPrefix(v.gone, "GOAWAY NO_ERROR") || v.last != 5 || v.streams[3] != "RST REFUSED_STREAM\n" {
			t.Errorf("%q with stream %d; stream 3: %q", v.gone, v.last, v.streams[3])
		}
		_ = w.fr.WriteData(3, true, []byte("12"))
		s.send(w.taken())
		s.send(w.request(7, true, "GET", "/no"))
		if v := s.read(t); v.streams[7] != "" {
			t.Errorf("stream 7: %q", v.streams[7])
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if v := s.read(t); !strings.HasSuffix(v.gone, "closed\n") {
			t.Errorf("%q", v.gone)
		}
	})
}

// A client that makes the table of its decoder smaller gets a header block of the server before
// any other.
func TestSmallerTable(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		s.send(w.request(1, true, "GET", "/no"))
		_ = w.fr.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		s.send(w.taken())
		s.send(w.request(3, true, "GET", "/no"))
		s.send(w.request(5, true, "GET", "/no"))
		s.want(t, "2 fast, 1 slow")
		_ = w.fr.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 8192})
		s.send(w.taken())
		s.send(w.request(7, true, "GET", "/no"))
		s.want(t, "3 fast, 1 slow")
	})
}

// Requests that wait are bounded in number and size; then all go on.
func TestWaitingIsBounded(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		var all []byte
		for id := uint32(1); id < 2*250; id += 2 {
			all = append(all, w.request(id, false, "POST", "/no")...)
		}
		s.send(all)
		s.want(t, "0 fast, 0 slow")
		s.send(w.request(501, false, "POST", "/no")) // more than the server allows
		s.want(t, "0 fast, 250 slow")
		if v := s.read(t); v.streams[501] != "RST PROTOCOL_ERROR\n" {
			t.Errorf("%q", v.streams[501])
		}
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		for id := uint32(1); id < 2*10; id += 2 {
			s.send(w.request(id, false, "POST", "/no"))
			_ = w.fr.WriteData(id, false, []byte(strings.Repeat("x", 15_000)))
			s.send(w.taken())
		}
		if got := s.answers(); got != "0 fast, 9 slow" {
			t.Error(got)
		}
	})
	alone(t, nil, func(t *testing.T, s *side, w *writer) { // CVE-2019-9518
		s.send(w.request(1, false, "POST", "/no"))
		for range 40 {
			_ = w.fr.WriteData(1, false, nil)
		}
		_ = w.fr.WriteDataPadded(1, false, nil, make([]byte, 100))
		s.send(w.taken())
		s.want(t, "0 fast, 1 slow")
	})
}

// A client gets the credit for refused bodies back, with their padding.
func TestRefund(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		before := s.read(t).back
		sent := int64(0)
		for id := uint32(1); id < 40; id += 2 {
			s.send(w.request(id, false, "POST", "/no"))
			_ = w.fr.WriteDataPadded(id, id%4 == 1, []byte(strings.Repeat("x", 1000)), make([]byte, 99))
			sent += 1100
			if id%4 == 3 {
				_ = w.fr.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			s.send(w.taken())
		}
		back := s.read(t).back - before
		if sent-back >= 4096 || back > sent {
			t.Errorf("%d of %d bytes were given back", back, sent)
		}
		s.want(t, "10 fast, 0 slow")
	})
}

// An attack with empty CONTINUATION frames ends (CVE-2024-27316 and its kind).
func TestContinuationFlood(t *testing.T) {
	alone(t, nil, func(t *testing.T, s *side, w *writer) {
		_ = w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: w.fields(":method", "GET")})
		for range 2000 {
			_ = w.fr.WriteContinuation(1, false, nil)
		}
		s.send(w.taken())
		if v := s.read(t); !strings.HasPrefix(v.gone, "GOAWAY PROTOCOL_ERROR") {
			t.Errorf("%q", v.gone)
		}
	})
}
