package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/fastpath/h2"
)

// endless is a connection on which the same requests come again and again.
type endless struct {
	net.Conn
	rounds  int
	batch   func() []byte
	rest    []byte
	written int
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.rounds == 0 {
			return 0, io.EOF
		}
		e.rounds--
		e.rest = e.batch()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *endless) Write(p []byte) (int, error) {
	e.written += bytes.Count(p, []byte("sold_out"))
	return len(p), nil
}
func (*endless) SetReadDeadline(time.Time) error  { return nil }
func (*endless) SetWriteDeadline(time.Time) error { return nil }

// always refuses all, at no cost.
type always struct{}

var refusal = fmt.Appendf(nil, "HTTP/1.1 409 Conflict\r\nCache-Control: no-store\r\nContent-Length: %d\r\nContent-Type: application/problem+json\r\nServer: Caddy\r\nStockgate-Refusal: sold_out\r\nDate: Mon, 23 Nov 2026 15:00:00 GMT\r\n\r\n%0200d", 200, 0)

func (always) Concerns(*fastpath.Request) bool { return true }
func (always) Judge(out []byte, _ *fastpath.Request) ([]byte, bool) {
	return append(out, refusal...), true
}

// BenchmarkRefusals has 64 requests at a time on one connection.
func BenchmarkRefusals(b *testing.B) {
	w := newWriter()
	id := uint32(1)
	e := &endless{rounds: b.N/64 + 1, batch: func() []byte {
		var all []byte
		for range 64 {
			all = append(all, w.request(id, false, "POST", "/api/order", "user-agent", "h2load", "content-type", "application/json", "content-length", "35")...)
			_ = w.fr.WriteData(id, true, []byte(`{"sku":"sku-00000000","quantity":1}`))
			all = append(all, w.taken()...)
			id += 2
		}
		_ = w.fr.WriteWindowUpdate(0, 64*200)
		return append(all, w.taken()...)
	}}
	e.rest = w.hello()
	c := (&h2.Server{Fast: &fastpath.Server{Judge: always{}}}).Share(e, nil, nil)
	var settings bytes.Buffer
	_ = http2.NewFramer(&settings, nil).WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250}, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 16704}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
	_, _ = c.Write(settings.Bytes())
	p := make([]byte, 4096)
	for {
		if _, err := c.Read(p); err != nil {
			break
		}
	}
	if e.written < b.N {
		b.Errorf("%d of %d were answered", e.written, b.N)
	}
}
