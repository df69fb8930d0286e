package learn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/learn"
)

// entry is an entry of a recording, as a browser exports it.
type entry struct {
	method, url string
	header      map[string]string
	mime, body  string
	status      int
	answer      string
	answerMime  string
	set         map[string]string // header of the answer
}

// har writes entries as HAR 1.2.
func har(entries ...entry) string {
	all := []any{}
	for _, e := range entries {
		request := map[string]any{"method": e.method, "url": e.url, "headers": fields(e.header), "cookies": []any{}, "bodySize": len(e.body)}
		if e.body != "" {
			request["postData"] = map[string]any{"mimeType": e.mime, "text": e.body}
		}
		all = append(all, map[string]any{"request": request, "response": map[string]any{
			"status": e.status, "headers": fields(e.set), "content": map[string]any{"size": len(e.answer), "mimeType": e.answerMime, "text": e.answer},
		}})
	}
	raw, err := json.Marshal(map[string]any{"log": map[string]any{"version": "1.2", "pages": []any{map[string]any{"title": "x"}}, "entries": all, "comment": "x"}})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func fields(h map[string]string) []any {
	all := []any{}
	for name, value := range h {
		all = append(all, map[string]string{"name": name, "value": value})
	}
	return all
}

const asJSON = "application/json"

// purchase is a recording that learn understands.
func purchase() []entry {
	session := map[string]string{"Cookie": "sid=c0ffee5e55104"}
	return []entry{
		{method: "GET", url: "https://shop.example.com/api/items", header: session, status: 200, answer: `[{"sku":"SNK-1"}]`, answerMime: asJSON},
		{method: "POST", url: "https://shop.example.com/api/orders", header: session, mime: asJSON, body: `{"sku":"SNK-1","quantity":2,"email":"canary@mail.test"}`,
			status: 201, answer: `{"order_id":"SO-77123"}`, answerMime: asJSON},
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	whole := har(purchase()...)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "ends in the middle"},
		{"a page", "<html>", "not JSON"},
		{"other JSON", `{"a":1}`, "not a HAR file"},
		{"a list", `[]`, "not a HAR file"},
		{"no entries", `{"log":{"version":"1.2"}}`, "not a HAR file"},
		{"entries are text", `{"log":{"entries":"x"}}`, "not a HAR file"},
		{"an entry is text", `{"log":{"entries":["secret-canary"]}}`, "not what HAR 1.2 has"},
		{"a status is text", `{"log":{"entries":[{"response":{"status":"secret-canary"}}]}}`, "not what HAR 1.2 has"},
		{"truncated", whole[:len(whole)/2], "ends in the middle, after 1 entries"},
		{"deep", `{"log":{"pages":` + strings.Repeat("[", 20000), "ends in the middle"},
		{"long", `{"log":{"entries":[{"request":{"headers":[` + strings.Repeat(`{"name":"a","value":"b"},`, learn.MaxEntry/20) + `]}}]}}`, "too long"},
	} {
		_, err := learn.Read("buy.har", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTruncatedAnywhere cuts a recording at each byte: it is never taken for a whole one.
func TestTruncatedAnywhere(t *testing.T) {
	whole := har(purchase()...)
	for n := range len(whole) {
		if _, err := learn.Read("buy.har", strings.NewReader(whole[:n])); err == nil {
			t.Fatalf("cut after %d of %d bytes, and read", n, len(whole))
		}
	}
	if _, err := learn.Read("buy.har", strings.NewReader(whole)); err != nil {
		t.Error(err)
	}
}

// endless makes a recording of 200 MB, and measures what its reader holds.
type endless struct {
	t    *testing.T
	left int
	rest []byte
	read int
	most uint64
}

const large = 200 << 20

func (e *endless) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		switch {
		case e.left <= 0:
			return 0, io.EOF
		case e.read == 0:
			e.rest = []byte(`{"log":{"entries":[`)
		default:
			e.rest = e.entry()
		}
	}
	n := copy(p, e.rest)
	if e.rest, e.read = e.rest[n:], e.read+n; e.read>>24 != (e.read-n)>>24 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		e.most = max(e.most, m.HeapAlloc)
	}
	return n, nil
}

// entry makes the next one: a body of half a megabyte or of 12, and at the end the purchase.
func (e *endless) entry() []byte {
	size := 512 << 10
	if e.left%3 == 0 {
		size = 12 << 20
	}
	if e.left -= size; e.left > 0 {
		return []byte(fmt.Sprintf(`{"request":{"method":"GET","url":"https://shop.example.com/p","headers":[]},"response":{"status":200,"headers":[],"content":{"size":1,"mimeType":"text/html","text":%q}}},`, strings.Repeat("x", size)))
	}
	whole := har(purchase()...)
	from, to := strings.Index(whole, `"entries":[`)+len(`"entries":[`), strings.LastIndex(whole, "]")
	last := strings.LastIndex(whole[:to], "]")
	return []byte(whole[from:last] + "]}}")
}

func TestLargeRecordingInBoundedMemory(t *testing.T) {
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	file := &endless{t: t, left: large}
	rec, err := learn.Read("buy.har", file)
	if err != nil {
		t.Fatal(err)
	}
	if file.read < large*9/10 || len(rec.Notes) == 0 {
		t.Errorf("%d bytes, notes %q", file.read, rec.Notes)
	}
	if used := int64(file.most) - int64(before.HeapAlloc); used > learn.MaxKept+64<<20 {
		t.Errorf("%d MB in use", used>>20)
	}
	if _, err := learn.Learn([]*learn.Recording{rec}, learn.Options{}); err != nil {
		t.Error(err)
	}
}

func TestShortenedStringsStayJSON(t *testing.T) {
	text := `{"a\"b":"\u00e9\\\"0123456789\ud83d\ude00","short":"x","list":["\\\\\\\\\\\\\\\\\\\\\\\\"]}`
	for n := range 20 {
		out, err := io.ReadAll(learn.Shortened(strings.NewReader(text), n))
		if err != nil || !json.Valid(out) {
			t.Errorf("shortened to %d: %s %v", n, out, err)
		}
	}
	if out, _ := io.ReadAll(learn.Shortened(strings.NewReader(text), 100)); string(out) != text {
		t.Errorf("changed: %s", out)
	}
}

func FuzzShortened(f *testing.F) {
	f.Add([]byte(`{"a":"\u00e9\\\"0123456789"}`), 3)
	f.Fuzz(func(t *testing.T, text []byte, max int) {
		out, err := io.ReadAll(learn.Shortened(bytes.NewReader(text), max&63))
		if err != nil || json.Valid(text) && !json.Valid(out) {
			t.Errorf("%q: %q %v", text, out, err)
		}
	})
}

func FuzzLearn(f *testing.F) {
	f.Add([]byte(har(purchase()...)))
	for _, known := range []string{"vendure", "medusa"} {
		raw, err := os.ReadFile("testdata/" + known + "-buy.har")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rec, err := learn.Read("buy.har", bytes.NewReader(text))
		if err != nil {
			return
		}
		l, err := learn.Learn([]*learn.Recording{rec}, learn.Options{})
		if err != nil {
			return
		}
		for line := range strings.Lines(l.Caddyfile(learn.Addresses{}) + l.QuestionsFile(nil)) {
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
				t.Errorf("%q", line)
			}
		}
	})
}
