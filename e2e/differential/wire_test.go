package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A shop whose answer cannot be read ends the run: counted as a refusal, it would never be
// compared. One that closes the connection has refused.
func TestUnreadableAnswersAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		fails  bool
	}{
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(reached, "1")
			w.Write([]byte("<br />{}"))
		}, true},
		"another shape": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(reached, "1")
			w.Write([]byte(`{"readings":[{"casts":[false]}]}`))
		}, true},
		"closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(test.answer)
			defer s.Close()
			l := &lane{port: s.Listener.Addr().(*net.TCPAddr).Port}
			defer l.close()
			_, ok, err := l.exchange(&request{method: "GET"}, []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
			if ok || (err != nil) != test.fails {
				t.Errorf("ok %v, error %v", ok, err)
			}
		})
	}
}
