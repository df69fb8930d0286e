package token_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/token"
)

// edge publishes a key set that tests change.
type edge struct {
	*httptest.Server
	fetches atomic.Int64
	mu      sync.Mutex
	answer  http.HandlerFunc
}

func newEdge(t *testing.T, keys ...token.Key) *edge {
	e := new(edge)
	e.publish(t, keys...)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.fetches.Add(1)
		e.mu.Lock()
		answer := e.answer
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *edge) set(answer http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func (e *edge) publish(t *testing.T, keys ...token.Key) {
	t.Helper()
	var public []json.RawMessage
	for _, k := range keys {
		raw, ok := k.PublicJWK()
		if !ok {
			t.Fatal("no public key")
		}
		public = append(public, raw)
	}
	set, err := token.JWKS(public...)
	if err != nil {
		t.Fatal(err)
	}
	e.set(func(w http.ResponseWriter, _ *http.Request) { w.Write(set) })
}

// hand is a clock that tests move.
type hand struct{ now atomic.Int64 }

func (h *hand) time() time.Time         { return time.Unix(issued+1, h.now.Load()) }
func (h *hand) advance(d time.Duration) { h.now.Add(int64(d)) }

func remote(t *testing.T, o token.RemoteOptions) (*token.RemoteKeys, *token.Verifier) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	keys, err := token.NewRemoteKeys(o)
	if err != nil {
		t.Fatal(err)
	}
	return keys, mustVerifier(t, token.Options{Remote: keys})
}

func newKey(t *testing.T) token.Key {
	t.Helper()
	key, _, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestRemoteKeysAreFetchedOnce(t *testing.T) {
	key := newKey(t)
	e := newEdge(t, key)
	_, v := remote(t, token.RemoteOptions{URL: e.URL})
	if n := e.fetches.Load(); n != 0 {
		t.Errorf("%d fetches before the first token", n)
	}
	signed := mustSign(t, key, claims())
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := v.Verify(signed, token.Expect{AnySubject: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := e.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for 50 tokens", n)
	}
}

func TestUnknownKeyIsAskedForOncePerInterval(t *testing.T) {
	first, second := newKey(t), newKey(t)
	e, clock := newEdge(t, first), new(hand)
	_, v := remote(t, token.RemoteOptions{URL: e.URL, MinInterval: 10 * time.Second, Now: clock.time})
	verify := func(key token.Key) error {
		_, err := v.Verify(mustSign(t, key, claims()), token.Expect{AnySubject: true})
		return err
	}
	if err := verify(first); err != nil {
		t.Fatal(err)
	}
	clock.advance(10*time.Second - 1)
	for range 20 {
		if err := verify(second); !errors.Is(err, token.ErrUnknownKey) {
			t.Fatal(err)
		}
	}
	if n := e.fetches.Load(); n != 1 {
		t.Errorf("%d fetches within the interval", n)
	}
	clock.advance(1)
	e.publish(t, first, second)
	if err := verify(second); err != nil {
		t.Error(err)
	}
	clock.advance(10 * time.Second)
	if err := errors.Join(verify(first), verify(second)); err != nil {
		t.Error(err)
	}
	if n := e.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2: known keys need none", n)
	}
}

func TestKeysStayWhenAFetchFails(t *testing.T) {
	raw, _ := newKey(t).PublicJWK()
	long := `{"keys":[` + string(raw) + `]}` + strings.Repeat(" ", 256<<10)
	for name, answer := range map[string]http.HandlerFunc{
		"status":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"no key":   func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"keys":[]}`)) },
		"too long": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(long)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			w.Write([]byte(`{"keys":[`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			key, clock := newKey(t), new(hand)
			e := newEdge(t, key)
			keys, v := remote(t, token.RemoteOptions{URL: e.URL, Now: clock.time})
			if err := keys.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.set(answer)
			clock.advance(time.Minute)
			for _, why := range []string{"fetched", "asked again"} {
				_, err := v.Verify(mustSign(t, newKey(t), claims()), token.Expect{AnySubject: true})
				if !errors.Is(err, token.ErrKeysUnavailable) || errors.Is(err, token.ErrUnknownKey) || !strings.Contains(err.Error(), "could not be fetched") {
					t.Errorf("%s: %v", why, err)
				}
			}
			if _, err := v.Verify(mustSign(t, key, claims()), token.Expect{AnySubject: true}); err != nil {
				t.Errorf("the old key: %v", err)
			}
			if n := e.fetches.Load(); n != 2 {
				t.Errorf("%d fetches, want 2", n)
			}
			if err := keys.Refresh(t.Context()); err == nil {
				t.Error("Refresh does not say that it failed")
			}
		})
	}
}

func TestWithdrawnKeyIsForgotten(t *testing.T) {
	withdrawn, current := newKey(t), newKey(t)
	e, clock := newEdge(t, withdrawn, current), new(hand)
	keys, v := remote(t, token.RemoteOptions{URL: e.URL, MaxAge: time.Hour, Now: clock.time})
	signed := mustSign(t, withdrawn, claims())
	if _, err := v.Verify(signed, token.Expect{AnySubject: true}); err != nil {
		t.Fatal(err)
	}
	e.publish(t, current)
	e.mu.Lock()
	answer, asked := e.answer, make(chan struct{}, 2)
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		answer(w, r)
	}
	e.mu.Unlock()
	clock.advance(time.Hour)
	// Old keys answer at once, and cause a fetch behind the scenes.
	if _, err := v.Verify(signed, token.Expect{AnySubject: true}); err != nil {
		t.Error(err)
	}
	<-asked
	if err := keys.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(signed, token.Expect{AnySubject: true}); !errors.Is(err, token.ErrUnknownKey) {
		t.Errorf("withdrawn key: %v", err)
	}
	if _, err := v.Verify(mustSign(t, current, claims()), token.Expect{AnySubject: true}); err != nil {
		t.Errorf("current key: %v", err)
	}
}

func TestSlowEdgeDoesNotHoldARequestForEver(t *testing.T) {
	key := newKey(t)
	e := newEdge(t, key)
	asked, open := make(chan struct{}, 1), make(chan struct{})
	e.set(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-open
		raw, _ := key.PublicJWK()
		set, _ := token.JWKS(raw)
		w.Write(set)
	})
	keys, v := remote(t, token.RemoteOptions{URL: e.URL})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	signed := mustSign(t, key, claims())
	go func() {
		_, err := v.VerifyContext(ctx, signed, token.Expect{AnySubject: true})
		left <- err
	}()
	<-asked
	cancel()
	if err := <-left; !errors.Is(err, token.ErrKeysUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("request that was left: %v", err)
	}
	// The fetch went on: its answer serves the next.
	close(open)
	if err := keys.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(signed, token.Expect{AnySubject: true}); err != nil {
		t.Error(err)
	}
}

func TestFetchEndsByItsTimeout(t *testing.T) {
	e := newEdge(t, newKey(t))
	e.set(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	keys, _ := remote(t, token.RemoteOptions{URL: e.URL, Timeout: time.Millisecond})
	if err := keys.Refresh(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestNewRemoteKeysRefuses(t *testing.T) {
	for _, o := range []token.RemoteOptions{
		{URL: ""}, {URL: "/jwks.json"}, {URL: "ftp://edge/jwks.json"}, {URL: "http://"}, {URL: "http://a b/"},
		{URL: "http://edge/", Timeout: -1}, {URL: "http://edge/", MinInterval: -1}, {URL: "http://edge/", MaxAge: -1},
	} {
		if _, err := token.NewRemoteKeys(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}
