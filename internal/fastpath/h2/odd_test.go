package h2_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// TestOddClients has clients that break a rule around a request that is, or could be, answered
// here. They see what clients of the server alone see; fast is how many requests are answered.
func TestOddClients(t *testing.T) {
	raw := func(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) func(*writer) []byte {
		return func(w *writer) []byte {
			_ = w.fr.WriteRawFrame(kind, flags, stream, []byte(payload))
			return w.taken()
		}
	}
	get := func(id uint32) func(*writer) []byte {
		return func(w *writer) []byte { return w.request(id, true, "GET", "/no") }
	}
	post := func(id uint32, more ...string) func(*writer) []byte {
		return func(w *writer) []byte { return w.request(id, false, "POST", "/no", more...) }
	}
	data := func(id uint32, ended bool, text string) func(*writer) []byte {
		return func(w *writer) []byte { _ = w.fr.WriteData(id, ended, []byte(text)); return w.taken() }
	}
	block := func(id uint32, flags http2.Flags, fields ...string) func(*writer) []byte {
		return func(w *writer) []byte {
			_ = w.fr.WriteRawFrame(http2.FrameHeaders, flags, id, w.fields(fields...))
			return w.taken()
		}
	}
	goAway := raw(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")
	good := []string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/no"}
	with := func(more ...string) []string { return slices.Concat(good, more) }
	for name, c := range map[string]struct {
		fast  int
		steps []func(*writer) []byte
	}{
		"DATA after the answer":                {2, []func(*writer) []byte{get(1), data(1, false, "x"), get(3)}},
		"HEADERS after the answer":             {1, []func(*writer) []byte{get(1), get(1), get(3)}},
		"an id that falls":                     {1, []func(*writer) []byte{get(5), get(3), get(7)}},
		"an even id":                           {1, []func(*writer) []byte{get(3), get(2)}},
		"DATA on an even id":                   {1, []func(*writer) []byte{get(3), data(2, true, "x")}},
		"DATA on a stream that was not opened": {1, []func(*writer) []byte{get(1), data(3, true, "x")}},
		"DATA on one that was skipped":         {2, []func(*writer) []byte{get(5), data(3, true, "x"), get(7)}},
		"no window after the answer":           {2, []func(*writer) []byte{get(1), raw(http2.FrameWindowUpdate, 0, 1, "\x00\x00\x00\x00"), get(3)}},
		"no window for the connection":         {1, []func(*writer) []byte{get(1), raw(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x00"), get(3)}},
		"too much window":                      {1, []func(*writer) []byte{get(1), raw(http2.FrameWindowUpdate, 0, 0, "\x7f\xff\xff\xff"), get(3)}},
		"too much window for a stream":         {0, []func(*writer) []byte{post(1), raw(http2.FrameWindowUpdate, 0, 1, "\x7f\xff\xff\xff"), data(1, true, "x")}},
		"a stream that depends on itself": {1, []func(*writer) []byte{func(w *writer) []byte {
			_ = w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: w.fields(good...), EndStream: true, EndHeaders: true, Priority: http2.PriorityParam{StreamDep: 1}})
			return w.taken()
		}, get(3)}},
		"one that does so while it waits":       {0, []func(*writer) []byte{post(1), raw(http2.FramePriority, 0, 1, "\x00\x00\x00\x01\x01"), data(1, true, "x")}},
		"padding that is too long":              {1, []func(*writer) []byte{get(1), raw(http2.FrameData, 8, 1, "\xffxx"), get(3)}},
		"the same while it waits":               {0, []func(*writer) []byte{post(1), raw(http2.FrameData, 8, 1, "\xffxx"), get(3)}},
		"HEADERS with such padding":             {0, []func(*writer) []byte{post(1), raw(http2.FrameHeaders, 0xc, 1, "\xffxx"), data(1, true, "x")}},
		"HEADERS without their priority":        {1, []func(*writer) []byte{get(1), raw(http2.FrameHeaders, 0x24, 3, "xx")}},
		"a block that goes on in another frame": {1, []func(*writer) []byte{get(1), block(3, 1, good...), get(5)}},
		"CONTINUATION of nothing":               {1, []func(*writer) []byte{get(1), raw(http2.FrameContinuation, 4, 1, ""), get(3)}},
		"a block that cannot be decoded":        {1, []func(*writer) []byte{get(1), raw(http2.FrameHeaders, 5, 3, "\x80"), get(5)}},
		"a field name in capitals":              {2, []func(*writer) []byte{get(1), block(3, 5, with("X", "y")...), get(5)}},
		"a value with NUL":                      {2, []func(*writer) []byte{get(1), block(3, 5, with("x", "\x00")...), get(5)}},
		"two paths":                             {2, []func(*writer) []byte{get(1), block(3, 5, append([]string{":path", "/"}, good...)...), get(5)}},
		"a pseudo field behind others":          {2, []func(*writer) []byte{get(1), block(3, 5, "x", "y", ":path", "/no"), get(5)}},
		"no path":                               {2, []func(*writer) []byte{get(1), block(3, 5, good[:6]...), get(5)}},
		"Connection":                            {2, []func(*writer) []byte{get(1), block(3, 5, with("connection", "close")...), get(5)}},
		"Expect":                                {1, []func(*writer) []byte{get(1), post(3, "expect", "100-continue"), data(3, true, "x")}},
		"CONNECT":                               {1, []func(*writer) []byte{get(1), block(3, 4, ":method", "CONNECT", ":authority", "a")}},
		"https without TLS":                     {1, []func(*writer) []byte{get(1), block(3, 5, ":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/no")}},
		"another Host besides":                  {1, []func(*writer) []byte{get(1), block(3, 5, with("host", "b")...)}},
		"the same Host besides":                 {2, []func(*writer) []byte{get(1), block(3, 5, with("host", "a")...)}},
		"it twice":                              {1, []func(*writer) []byte{get(1), block(3, 5, with("host", "a", "host", "a")...)}},
		"only a Host":                           {2, []func(*writer) []byte{get(1), block(3, 5, ":method", "GET", ":scheme", "http", ":path", "/no", "host", "a")}},
		"more body than its length":             {0, []func(*writer) []byte{post(1, "content-length", "2"), data(1, false, "12"), data(1, true, "3")}},
		"less":                                  {0, []func(*writer) []byte{post(1, "content-length", "2"), data(1, true, "1")}},
		"a length without a body":               {0, []func(*writer) []byte{block(1, 5, with("content-length", "5")...)}},
		"two lengths":                           {0, []func(*writer) []byte{post(1, "content-length", "1", "content-length", "1"), data(1, true, "1")}},
		"trailers":                              {0, []func(*writer) []byte{post(1), data(1, false, "12"), block(1, 5, "x", "y")}},
		"trailers that are a request":           {0, []func(*writer) []byte{post(1), block(1, 5, good...)}},
		"invalid trailers":                      {0, []func(*writer) []byte{post(1), block(1, 5, "X", "y"), data(1, true, "x")}},
		"a long header":                         {1, []func(*writer) []byte{get(1), block(3, 5, with("x", strings.Repeat("?", 4300))...)}},
		"many headers and a trailer":            {1, []func(*writer) []byte{get(1), block(3, 5, slices.Concat(good, []string{"trailer", "x"}, slices.Repeat([]string{"x", "y"}, 200))...)}},
		"a long header and a trailer":           {1, []func(*writer) []byte{get(1), block(3, 5, with("trailer", "x", "x", strings.Repeat("?", 4300))...)}},
		"a long trailer":                        {1, []func(*writer) []byte{get(1), block(3, 5, with("trailer", strings.Repeat("?", 3000), "x", strings.Repeat("?", 1300))...)}},
		"a header that is much too long":        {1, []func(*writer) []byte{get(1), block(3, 5, with("x", strings.Repeat("?", 40_000))...), get(5)}},
		"a frame that is too large":             {1, []func(*writer) []byte{get(1), func(*writer) []byte { return []byte("\xff\xff\xff\x00\x00\x00\x00\x00\x01") }}},
		"PUSH_PROMISE":                          {1, []func(*writer) []byte{get(1), raw(http2.FramePushPromise, 4, 1, "\x00\x00\x00\x02")}},
		"a window that is too large":            {1, []func(*writer) []byte{get(1), raw(http2.FrameSettings, 0, 0, "\x00\x04\xff\xff\xff\xff"), get(3)}},
		"RST_STREAM that is too long":           {0, []func(*writer) []byte{post(1), raw(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x00\x00")}},
		"RST_STREAM of what was not opened":     {1, []func(*writer) []byte{get(1), raw(http2.FrameRSTStream, 0, 3, "\x00\x00\x00\x08")}},
		"RST_STREAM after the answer":           {2, []func(*writer) []byte{get(1), raw(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x08"), get(3)}},
		"a PRIORITY_UPDATE that is nothing":     {0, []func(*writer) []byte{post(1), raw(0x10, 0, 0, "\x00\x00\x00\x01u=\xff"), data(1, true, "x")}},
		"GOAWAY while it waits":                 {1, []func(*writer) []byte{get(1), post(3), goAway, data(3, true, "x")}},
		"DATA after an answer, a GOAWAY and a request above it": {1, []func(*writer) []byte{get(7), goAway, get(11), data(7, false, "x")}},
		"the same stream twice after a GOAWAY":                  {1, []func(*writer) []byte{get(1), goAway, get(3), get(3), data(3, true, "x"), raw(http2.FrameWindowUpdate, 0, 3, "\x00\x00\x00\x00"), data(1, false, "x")}},
		"an even id after a GOAWAY":                             {1, []func(*writer) []byte{get(1), goAway, get(4), data(1, false, "x")}},
		"unknown frames":                                        {2, []func(*writer) []byte{get(1), raw(0x33, 0xff, 1, "what"), raw(0x33, 0, 0, ""), get(3)}},
		"HTTP/1.1":                                              {0, []func(*writer) []byte{func(*writer) []byte { return []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter()
			steps := [][]byte{w.hello()}
			for _, step := range c.steps {
				steps = append(steps, step(w))
			}
			if _, fast := both(t, steps...); fast != c.fast {
				t.Errorf("%d were answered, want %d", fast, c.fast)
			}
		})
	}
	t.Run("no SETTINGS", func(t *testing.T) {
		if _, fast := both(t, get(1)(newWriter())); fast != 0 {
			t.Error("it was answered")
		}
	})
}
