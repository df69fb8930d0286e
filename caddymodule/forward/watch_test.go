package forward_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/forward"
)

// forwarded is a request that was watched while a shop read some of its body and answered.
func forwarded(r *http.Request, keep forward.Excerpt, read int64, answer http.HandlerFunc) (*forward.Watch, *httptest.ResponseRecorder) {
	w := httptest.NewRecorder()
	watch := forward.BeginWatch(w, r, 8, keep)
	_, _ = io.CopyN(io.Discard, r.Body, read)
	answer(watch.Writer(), r)
	return watch, w
}

// The copy of a body is complete where a gate could have read all that it would: up to the end,
// or more than it takes.
func TestCopyOfTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		body     io.Reader
		read     int64
		complete bool
		want     string
	}{
		"all":                 {strings.NewReader("12345678"), 8, true, "12345678"},
		"all, of no length":   {io.MultiReader(strings.NewReader("1234")), 5, true, "1234"},
		"too much for a gate": {strings.NewReader("1234567890"), 10, true, "123456789"},
		"half":                {strings.NewReader("12345678"), 4, false, "1234"},
		"half, of no length":  {io.MultiReader(strings.NewReader("12345678")), 4, false, "1234"},
		"none of it":          {strings.NewReader("12345678"), 0, false, ""},
		"there is nothing":    {http.NoBody, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", c.body)
			watch, _ := forwarded(r, forward.Excerpt{}, c.read, func(http.ResponseWriter, *http.Request) {})
			r.Header.Set("Changed", "later")
			again, complete := watch.Request()
			got, err := io.ReadAll(again.Body)
			if err != nil || string(got) != c.want || complete != c.complete || again.Header.Get("Changed") != "" {
				t.Errorf("%q, complete %v, %v (%v)", got, complete, again.Header, err)
			}
			if _, err := io.ReadAll(r.Body); err != nil { // a transport may read on
				t.Error(err)
			}
			if again, _ := watch.Request(); again.Body != nil {
				if got, _ := io.ReadAll(again.Body); string(got) != c.want {
					t.Errorf("the copy has grown to %q", got)
				}
			}
		})
	}
}

// What the shop answers reaches the client as it is, and the rules get a copy: the first final
// status, the header of that moment, and so much of the body.
func TestCopyOfTheAnswer(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, `{"code":0}`)
	_ = z.Close()
	for name, c := range map[string]struct {
		encoding, body string
		keep           int
		want           string
		whole          bool
	}{
		"short":        {"", `{"code":0}`, 100, `{"code":0}`, true},
		"long":         {"", `{"code":0}`, 4, `{"co`, false},
		"gzip":         {"gzip", zipped.String(), 100, zipped.String(), true},
		"none is kept": {"", `{"code":0}`, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
			watch, w := forwarded(r, forward.Excerpt{Header: true, Body: c.keep}, 0, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Order", "1")
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusAccepted)
				w.Header().Set("X-Order", "later")
				_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(c.body)})
			})
			reply := watch.Writer().Reply(watch.Writer().Status())
			if w.Body.String() != c.body {
				t.Errorf("the client got %q", w.Body)
			}
			if reply.Status != http.StatusAccepted || reply.Header.Get("X-Order") != "1" || string(reply.Body) != c.want || reply.Whole != c.whole {
				t.Errorf("the rules got %+v", reply)
			}
			if plain, problem := reply.Plain(); c.encoding != "" && string(plain) != `{"code":0}` {
				t.Errorf("the rules read %q, %s", plain, problem)
			}
		})
	}
}

func BenchmarkWatch(b *testing.B) {
	body := []byte(`{"sku":"20002001","quantity":1}`)
	for _, watched := range []bool{false, true} {
		b.Run(map[bool]string{false: "bare", true: "watched"}[watched], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/api/order", bytes.NewReader(body))
				var w http.ResponseWriter = httptest.NewRecorder()
				if watched {
					w = forward.BeginWatch(w, r, 64<<10, forward.Excerpt{}).Writer()
				}
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusCreated)
			}
		})
	}
}
