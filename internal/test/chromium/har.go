package chromium

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Record begins a recording of what the page sends and gets, without cookies of an earlier one.
func (b *Browser) Record() {
	b.t.Helper()
	b.do("Network.clearBrowserCookies", nil, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.network = []message{}
}

// transfer is a request with its answer, as the events tell.
type transfer struct {
	id       string
	Request  networkRequest
	Response networkResponse
	sent     map[string]string // header with cookies
	got      map[string]string
	extra    bool // sent and got come
	ended    bool
	failed   bool
}

type networkRequest struct {
	Method   string            `json:"method"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	PostData string            `json:"postData"`
}

type networkResponse struct {
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	MimeType string            `json:"mimeType"`
}

// networkEvent has the parameters of all events that are read.
type networkEvent struct {
	ID       string            `json:"requestId"`
	Request  networkRequest    `json:"request"`
	Response networkResponse   `json:"response"`
	HasExtra bool              `json:"hasExtraInfo"`
	Headers  map[string]string `json:"headers"`
}

// whole reports whether all events of a request have come.
func (x *transfer) whole() bool {
	return x.failed || x.ended && (!x.extra || x.sent != nil && x.got != nil)
}

// transfers orders the events of the recording by request.
func (b *Browser) transfers() (all []*transfer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := map[string]*transfer{}
	for _, m := range b.network {
		var e networkEvent
		if json.Unmarshal(m.Params, &e) != nil || e.ID == "" {
			continue
		}
		x := of[e.ID]
		if x == nil {
			x = &transfer{id: e.ID}
			of[e.ID] = x
		}
		switch strings.TrimPrefix(m.Method, "Network.") {
		case "requestWillBeSent":
			x.Request = e.Request
			all = append(all, x)
		case "requestWillBeSentExtraInfo":
			x.sent = e.Headers
		case "responseReceived":
			x.Response, x.extra = e.Response, e.HasExtra
		case "responseReceivedExtraInfo":
			x.got = e.Headers
		case "loadingFinished":
			x.ended = true
		case "loadingFailed":
			x.failed = true
		}
	}
	return all
}

// HAR ends the recording, and returns it as HAR 1.2 with sensitive data. A page that redirects is not recorded.
func (b *Browser) HAR() []byte {
	b.t.Helper()
	entries := []any{}
	for _, x := range b.ended() {
		if !x.failed && strings.HasPrefix(x.Request.URL, "http") {
			entries = append(entries, b.harEntry(x))
		}
	}
	b.mu.Lock()
	b.network = nil
	b.mu.Unlock()
	raw, err := json.MarshalIndent(map[string]any{"log": map[string]any{
		"version": "1.2", "creator": map[string]string{"name": "WebInspector", "version": "537.36"}, "pages": []any{}, "entries": entries,
	}}, "", " ")
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// ended waits for the events of all requests: some come after the page has its answer.
func (b *Browser) ended() []*transfer {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		all := b.transfers()
		if i := slices.IndexFunc(all, func(x *transfer) bool { return !x.whole() }); i < 0 {
			return all
		}
		select {
		case <-tick.C:
		case <-late.C:
			b.t.Fatal("a request of the recording does not end")
		}
	}
}

func (b *Browser) harEntry(x *transfer) map[string]any {
	b.t.Helper()
	sent, got := x.Request.Headers, x.Response.Headers
	if x.extra {
		sent, got = x.sent, x.got
	}
	request := map[string]any{"method": x.Request.Method, "url": x.Request.URL, "headers": harPairs(sent), "bodySize": len(x.Request.PostData)}
	if x.Request.PostData != "" {
		request["postData"] = map[string]string{"mimeType": x.Request.Headers["Content-Type"], "text": x.Request.PostData}
	}
	var body struct {
		Body   string
		Base64 bool `json:"base64Encoded"`
	}
	b.do("Network.getResponseBody", map[string]string{"requestId": x.id}, &body)
	content := map[string]any{"size": len(body.Body), "mimeType": x.Response.MimeType, "text": body.Body}
	if body.Base64 {
		content["encoding"] = "base64"
	}
	return map[string]any{"request": request, "response": map[string]any{"status": x.Response.Status, "headers": harPairs(got), "content": content}}
}

// harPairs sorts a header by name.
func harPairs(header map[string]string) []map[string]string {
	pairs := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		pairs = append(pairs, map[string]string{"name": name, "value": header[name]})
	}
	return pairs
}
