package selfcheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is a buyer at a shop. It keeps cookies, follows no redirect, and may record what it sends.
type browser struct {
	t      *testing.T
	base   string // of the shop, or of the gate before it
	client *http.Client
	token  string // sent as Authorization
	har    *recorder
	header map[string]string
}

// newBrowser opens a browser. dial reaches the gate; nil: the shop itself.
func newBrowser(t *testing.T, base string, dial func(context.Context, string, string) (net.Conn, error)) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var transport http.RoundTripper = &http.Transport{DialContext: dial, DisableKeepAlives: true}
	b := &browser{t: t, base: base}
	if dial == nil {
		b.har = &recorder{next: transport}
		transport = b.har
	}
	b.client = &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// visit is an answer with its body.
type visit struct {
	*http.Response
	text string
}

func (v *visit) json(into any) {
	if err := json.Unmarshal([]byte(v.text), into); err != nil {
		panic(err)
	}
}

func (b *browser) do(method, path, contentType, body string) *visit {
	target := path
	if strings.HasPrefix(path, "/") {
		target = b.base + path
	}
	r, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	r.Header.Set("User-Agent", "Mozilla/5.0")
	for name, value := range b.header {
		r.Header.Set(name, value)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Error(err)
		return &visit{&http.Response{Header: http.Header{}}, "{}"}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Error(err)
	}
	return &visit{resp, string(text)}
}

func (b *browser) get(path string) *visit { return b.do("GET", path, "", "") }

func (b *browser) form(path string, fields ...string) *visit {
	values := make(url.Values)
	for i := 0; i < len(fields); i += 2 {
		values.Add(fields[i], fields[i+1])
	}
	return b.do("POST", path, "application/x-www-form-urlencoded", values.Encode())
}

func (b *browser) post(path string, body any) *visit {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return b.do("POST", path, "application/json", string(raw))
}

// recorder writes what passes it as HAR 1.2.
type recorder struct {
	next    http.RoundTripper
	entries []any
}

func (h *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := h.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	request := map[string]any{"method": r.Method, "url": r.URL.String(), "httpVersion": "HTTP/1.1", "headers": pairs(r.Header), "cookies": []any{}, "bodySize": len(body)}
	if len(body) > 0 {
		request["postData"] = map[string]any{"mimeType": r.Header.Get("Content-Type"), "text": string(body)}
	}
	h.entries = append(h.entries, map[string]any{
		"startedDateTime": time.Now().Format(time.RFC3339Nano), "time": 1, "request": request,
		"response": map[string]any{
			"status": resp.StatusCode, "headers": pairs(resp.Header), "cookies": []any{}, "redirectURL": resp.Header.Get("Location"),
			"content": map[string]any{"size": len(answer), "mimeType": resp.Header.Get("Content-Type"), "text": string(answer)},
		},
	})
	return resp, nil
}

func pairs(h http.Header) []any {
	all := []any{}
	for name, values := range h {
		for _, v := range values {
			all = append(all, map[string]string{"name": name, "value": v})
		}
	}
	return all
}

// save writes the recording to a file.
func (h *recorder) save(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"log": map[string]any{"version": "1.2", "creator": map[string]string{"name": "test", "version": "1"}, "pages": []any{}, "entries": h.entries}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
