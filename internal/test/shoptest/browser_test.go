//go:build shops

package shoptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"time"
)

// browser is a buyer's: it keeps cookies and connections, and comes again where the gate says
// when.
type browser struct {
	base   string
	header http.Header // of every request
	client *http.Client
	paid   time.Duration // of the request that placed the order
}

func newBrowser(base string) *browser {
	jar, _ := cookiejar.New(nil) // it has no error to return
	return &browser{base: base, header: http.Header{}, client: &http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
}

func (b *browser) close() { b.client.CloseIdleConnections() }

// reply is an answer to a browser.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	refusal string // the reason, where the gate refused
}

// waiting are the refusals after which a buyer comes again.
var waiting = map[string]bool{
	"all_held": true, "duplicate": true, "pending": true, "in_doubt": true, "rate_limited": true, "busy": true, "unavailable": true,
}

// send sends a request, and again as long as the gate asks to wait.
func (b *browser) send(ctx context.Context, method, path, body string) (reply, error) {
	for {
		r, err := b.once(ctx, method, path, body)
		if err != nil || !waiting[r.refusal] {
			return r, err
		}
		after, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil {
			return r, fmt.Errorf("%s without Retry-After: %s", r.refusal, r.body)
		}
		again := time.NewTimer(time.Duration(after) * time.Second)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return r, fmt.Errorf("%s to the end: %w", r.refusal, ctx.Err())
		}
	}
}

// once sends a request once.
func (b *browser) once(ctx context.Context, method, path, body string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewBufferString(body))
	if err != nil {
		return reply{}, err
	}
	for name, values := range b.header {
		r.Header[name] = values
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := b.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, text, answer.Header.Get("Stockgate-Refusal")}, err
}

// at is the value at a path of a JSON text: names of members and numbers of elements.
func at(text []byte, path ...any) any {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// quoted is a text as JSON.
func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the tests marshal texts and numbers
	}
	return string(b)
}
