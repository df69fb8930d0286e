package jwks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/jwks"
)

// What is fetched and when is tested with tokens, in the packages token and
// bearer; here is what they cannot see.

// every is content with every set, none with no set.
func every(string) bool { return true }
func none(string) bool  { return false }

type publisher struct {
	*httptest.Server
	fetches atomic.Int64
	broken  atomic.Bool
	now     atomic.Int64
}

func publish(t *testing.T) (*publisher, *jwks.Remote[string]) {
	t.Helper()
	p := new(publisher)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.broken.Load() {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		p.fetches.Add(1)
		w.Write([]byte(r.Header.Get("Accept")))
	}))
	t.Cleanup(p.Close)
	remote, err := jwks.New(jwks.Options{
		URL:         strings.Replace(p.URL, "http://", "http://user:pass-word@", 1),
		MinInterval: time.Minute, MaxAge: time.Hour, Timeout: time.Minute,
		Now: func() time.Time { return time.Unix(p.now.Load(), 0) },
	}, func(raw []byte) (string, error) { return string(raw), nil })
	if err != nil {
		t.Fatal(err)
	}
	return p, remote
}

func TestFind(t *testing.T) {
	p, remote := publish(t)
	set, err := remote.Find(t.Context(), every)
	if err != nil || !strings.Contains(set, "application/jwk-set+json") {
		t.Errorf("%q %v", set, err)
	}
	if set, err := remote.Find(t.Context(), none); !errors.Is(err, jwks.ErrMissing) || set != "" || !strings.Contains(err.Error(), "less than 1m0s ago") {
		t.Errorf("%q %v", set, err)
	}
	p.now.Add(60)
	if _, err := remote.Find(t.Context(), none); !errors.Is(err, jwks.ErrMissing) || !strings.Contains(err.Error(), "just now") {
		t.Error(err)
	}
	p.broken.Store(true)
	p.now.Add(60)
	for _, when := range []string{"418", "is not asked again yet"} {
		_, err := remote.Find(t.Context(), none)
		if !errors.Is(err, jwks.ErrFetch) || errors.Is(err, jwks.ErrMissing) || !strings.Contains(err.Error(), when) || strings.Contains(err.Error(), "pass-word") {
			t.Errorf("%s: %v", when, err)
		}
	}
	if _, err := remote.Find(t.Context(), every); err != nil {
		t.Errorf("what is known: %v", err)
	}
	if n := p.fetches.Load(); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

// has is never asked about a set that is not there.
func TestNothingFetchedIsNoSet(t *testing.T) {
	p, remote := publish(t)
	p.broken.Store(true)
	if _, err := remote.Find(t.Context(), every); !errors.Is(err, jwks.ErrFetch) {
		t.Error(err)
	}
	if _, err := remote.Find(t.Context(), every); !errors.Is(err, jwks.ErrFetch) {
		t.Error(err)
	}
}

// While there is no set, a failed fetch is soon repeated: until then no token can be verified.
func TestFirstFetchFails(t *testing.T) {
	p, remote := publish(t)
	p.broken.Store(true)
	for range 2 {
		if _, err := remote.Find(t.Context(), every); !errors.Is(err, jwks.ErrFetch) || !strings.Contains(err.Error(), "418") {
			t.Errorf("a fetch that fails: %v", err)
		}
		for range 100 {
			if _, err := remote.Find(t.Context(), every); !errors.Is(err, jwks.ErrFetch) || !strings.Contains(err.Error(), "is not asked again yet") {
				t.Fatalf("in the same second: %v", err)
			}
		}
		p.now.Add(1)
	}
	p.broken.Store(false)
	if set, err := remote.Find(t.Context(), every); err != nil || set == "" {
		t.Errorf("a second after the last failure: %q, %v", set, err)
	}
	p.now.Add(1)
	if _, err := remote.Find(t.Context(), none); !errors.Is(err, jwks.ErrMissing) || !strings.Contains(err.Error(), "less than 1m0s ago") {
		t.Errorf("an unknown key once there is a set: %v", err)
	}
	if n := p.fetches.Load(); n != 1 {
		t.Errorf("%d fetches worked, want 1", n)
	}
}

func TestURLsThatCannotBeRead(t *testing.T) {
	for _, url := range []string{"https://id:se cret@example.com/", "https://example.com:se-cret/", "ftp://u:se-cret@example.com/", ""} {
		_, err := jwks.New(jwks.Options{URL: url}, func([]byte) (int, error) { return 0, nil })
		if err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
