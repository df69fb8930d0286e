package h2_test

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/stockgate/stockgate/internal/fastpath"
)

// A connection that is idle keeps nothing of the largest head that it has had, whatever became of that
// request.
func TestLargeHeadsAreNotKept(t *testing.T) {
	var many []string
	for range 120 {
		many = append(many, "a", "")
	}
	long := strings.Repeat("x", 3900)
	for name, send := range map[string]func(*side, *writer){
		"many fields": func(s *side, w *writer) { s.send(w.request(1, true, "GET", "/yes", many...)) },
		"many fields that might be refused": func(s *side, w *writer) {
			s.send(w.request(1, true, "GET", "/no", many...))
		},
		"many fields in several frames": func(s *side, w *writer) {
			block := w.fields(append([]string{":method", "GET", ":scheme", "http", ":authority", "s", ":path", "/no"}, many...)...)
			_ = w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:9], EndStream: true})
			_ = w.fr.WriteContinuation(1, true, block[9:])
			s.send(w.taken())
		},
		"many crumbs, and a body": func(s *side, w *writer) {
			crumbs := strings.Split(strings.Repeat("cookie,,", 80), ",")
			s.send(w.request(1, false, "POST", "/no", crumbs[:160]...))
			s.send(w.data(1, true, "body"))
		},
		"many trailers": func(s *side, w *writer) {
			s.send(w.request(1, false, "POST", "/no"))
			block := w.fields(many...)
			_ = w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
			s.send(w.taken())
		},
		"a long path":              func(s *side, w *writer) { s.send(w.request(1, true, "GET", "/no/"+long)) },
		"a long path that goes on": func(s *side, w *writer) { s.send(w.request(1, true, "GET", "/yes/"+long)) },
		"a field that is not valid": func(s *side, w *writer) {
			s.send(w.request(1, true, "GET", "/yes", append(many, "A", "")...))
		},
		"long bodies": func(s *side, w *writer) {
			for id := uint32(1); id < 2*9; id += 2 {
				s.send(w.request(id, false, "POST", "/no"))
				_ = w.fr.WriteData(id, false, []byte(strings.Repeat("x", 15_000)))
				s.send(w.taken())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, nil, func(t *testing.T, s *side, w *writer) {
				send(s, w)
				s.send(w.request(99, true, "GET", "/no"))
				if fields, bytes := s.conn.Kept(); fields > 2*fastpath.MaxFields || bytes > 8<<10 {
					t.Errorf("it keeps room for %d fields, and %d bytes", fields, bytes)
				}
			})
		})
	}
}

// The heads of requests that wait count as their bodies do: beyond 128 KiB all go on.
func TestHeadsThatWaitAreBounded(t *testing.T) {
	long := strings.Repeat("x", 3850) // 4 KiB with the other fields, as the server counts them
	for name, request := range map[string]func(w *writer, id uint32) []byte{
		"for a body":    func(w *writer, id uint32) []byte { return w.request(id, false, "POST", "/no", "x-long", long) },
		"for the Judge": func(w *writer, id uint32) []byte { return w.request(id, true, "GET", "/no/later", "x-long", long) },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, nil, func(t *testing.T, s *side, w *writer) {
				s.postpone()
				for id := uint32(1); id < 2*32; id += 2 {
					s.send(request(w, id))
				}
				s.want(t, "0 fast, 0 slow")
				s.send(request(w, 65))
				s.want(t, "0 fast, 33 slow")
			})
		})
	}
}
