package sitetest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Backend is a server that notes what it gets.
type Backend struct {
	*httptest.Server
	Mu  sync.Mutex
	Got []Seen
}

// Seen is a request as it came.
type Seen struct {
	Method, URI, Body string
	Header            http.Header
}

// NewBackend starts a server that answers so.
func NewBackend(t *testing.T, answer http.HandlerFunc) *Backend {
	b := new(Backend)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.Mu.Lock()
		b.Got = append(b.Got, Seen{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		b.Mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// Created answers 201.
func Created(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

// Addr is its host and port.
func (b *Backend) Addr() string { return b.Listener.Addr().String() }

// Take returns what came since the last call.
func (b *Backend) Take() []Seen {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	got := b.Got
	b.Got = nil
	return got
}
