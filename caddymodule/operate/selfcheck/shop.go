package selfcheck

import (
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/stockgate/stockgate/internal/learn"
)

// shop answers as the recorded one, and notes the request that is being played.
type shop struct {
	learned *learn.Learned
	server  *http.Server
	listen  net.Listener
	done    chan error

	mu      sync.Mutex
	playing *learn.Exchange
	sent    *sent
	got     http.Header // of the request as it was sent; nil: it did not come
}

func openShop(l *learn.Learned) (*shop, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{learned: l, listen: listen, done: make(chan error, 1)}
	s.server = &http.Server{Handler: s}
	go func() { s.done <- s.server.Serve(listen) }()
	return s, nil
}

func (s *shop) address() string { return s.listen.Addr().String() }

func (s *shop) close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// play says which request comes next.
func (s *shop) play(x *learn.Exchange, as *sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.playing, s.sent, s.got = x, as, nil
}

// received returns the header with which the request came that was played; nil: it did not come, or not as it
// was sent.
func (s *shop) received() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	answer(w, s.find(r, body))
}

// find returns the recorded answer: to the request that is played, or to a question of the gate.
func (s *shop) find(r *http.Request, body []byte) *learn.Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent != nil && s.got == nil && r.Method == s.sent.method && r.RequestURI == s.sent.uri && string(body) == s.sent.body {
		s.got = r.Header.Clone()
		return s.playing
	}
	if staged := s.learned.Staged(r.RequestURI, body, s.playing); staged != nil {
		return staged
	}
	return s.learned.Recorded(r.Method, r.URL.EscapedPath(), body, s.playing)
}

// answer answers as it was recorded; nil: nothing was.
func answer(w http.ResponseWriter, x *learn.Exchange) {
	if x == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for _, name := range []string{"Content-Type", "Location"} {
		if value := x.AnswerHeader.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(max(x.Status, 200))
	if x.Status != http.StatusNoContent && x.Status != http.StatusNotModified {
		w.Write(x.Answer)
	}
}
