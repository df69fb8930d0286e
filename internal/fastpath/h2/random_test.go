package h2_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/test/draw"
)

var connections = flag.Int("connections", 300, "how many generated connections TestSame compares")

// script is a client that does anything.
type script struct {
	r     *rand.Rand
	w     *writer
	next  uint32
	begun []uint32 // streams
	odd   bool     // it may break rules
}

func (s *script) pick(from ...string) string { return from[s.r.IntN(len(from))] }

func (s *script) stream() uint32 {
	if len(s.begun) == 0 || s.odd && s.r.IntN(10) == 0 {
		return uint32(s.r.IntN(12))
	}
	return s.begun[max(0, len(s.begun)-1-s.r.IntN(4))]
}

// step is one or a few frames.
func (s *script) step() []byte {
	r, w := s.r, s.w
	switch n := r.IntN(20); {
	case n < 9:
		id := s.next
		s.next += 2
		if r.IntN(8) == 0 {
			s.next += 2 * uint32(r.IntN(3))
		}
		if s.odd && r.IntN(12) == 0 {
			id = s.stream()
		}
		s.begun = append(s.begun, id)
		return s.request(id)
	case n < 13:
		data := s.pick("", "1234", "12", "pass", strings.Repeat("x", r.IntN(20_000)))
		if r.IntN(4) == 0 {
			_ = w.fr.WriteDataPadded(s.stream(), r.IntN(2) == 0, []byte(data[:min(len(data), 16_000)]), make([]byte, r.IntN(200)))
		} else {
			_ = w.fr.WriteData(s.stream(), r.IntN(2) == 0, []byte(data[:min(len(data), 16_384)]))
		}
	case n == 13:
		_ = w.fr.WriteRSTStream(s.stream(), http2.ErrCodeCancel)
	case n == 14:
		_ = w.fr.WritePing(r.IntN(4) == 0, [8]byte{1})
	case n == 15:
		_ = w.fr.WriteWindowUpdate(s.stream(), uint32(1+r.IntN(100_000)))
	case n == 16:
		_ = w.fr.WriteWindowUpdate(0, uint32(1+r.IntN(1_000_000)))
	case n == 17:
		var settings []http2.Setting
		if r.IntN(2) == 0 {
			settings = append(settings, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(r.IntN(3) * 40_000)})
		}
		if r.IntN(2) == 0 {
			settings = append(settings, http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(r.IntN(3) * 4096)})
		}
		if s.odd && r.IntN(8) == 0 {
			settings = append(settings, http2.Setting{ID: http2.SettingID(r.IntN(10)), Val: r.Uint32()})
		}
		_ = w.fr.WriteSettings(settings...)
	case n == 18:
		_ = w.fr.WritePriority(s.stream()|1, http2.PriorityParam{StreamDep: uint32(r.IntN(9)), Weight: 3})
	default:
		_ = w.fr.WriteRawFrame(http2.FrameType(r.IntN(20)), http2.Flags(r.IntN(256)), s.stream(), bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(9)))
		if !s.odd {
			w.taken()
		}
	}
	return w.taken()
}

// request is a header block, perhaps in several frames.
func (s *script) request(id uint32) []byte {
	r, w := s.r, s.w
	fields := []string{":method", s.pick("GET", "POST", "POST", "HEAD", "PUT"), ":scheme", "http", ":authority", s.pick("shop.example.com", "a.example.com"),
		":path", s.pick("/no", "/no", "/no/1", "/no/2?x=1", "/yes", "/yes/2")}
	if s.odd && r.IntN(10) == 0 {
		i := 2 * r.IntN(4)
		fields = slices.Delete(fields, i, i+2)
	}
	more := func(names ...string) {
		if r.IntN(3) == 0 {
			fields = append(fields, s.pick(names...), s.pick("a", "b", "u1", strings.Repeat("v", r.IntN(300))))
		}
	}
	more("x-user", "x-user", "x-a")
	more("x-user", "cookie")
	more("cookie")
	if r.IntN(3) == 0 {
		fields = append(fields, "content-length", s.pick("0", "4", "4", "2", "16"))
	}
	if r.IntN(12) == 0 {
		fields = append(fields, s.pick("te", "expect", "trailer", "x_y", "host", "host", "connection", "priority"), s.pick("trailers", "100-continue", "x", "u=1", "shop.example.com", "a.example.com"))
	}
	if s.odd && r.IntN(12) == 0 {
		fields = append(fields, s.pick("", "X", "a b", ":path", ":x", "x"), s.pick("a", "\x00", " a", "\xff"))
	}
	if r.IntN(40) == 0 {
		for range r.IntN(150) {
			fields = append(fields, "x-long", strings.Repeat("y", r.IntN(100)))
		}
	}
	if r.IntN(60) == 0 {
		fields = append(fields, "x-long", strings.Repeat("?", r.IntN(60_000)))
	}
	if r.IntN(6) == 0 {
		w.encoder.SetMaxDynamicTableSize(uint32(r.IntN(2) * 4096))
	}
	block := w.fields(fields...)
	if s.odd && r.IntN(12) == 0 && len(block) > 0 {
		block[r.IntN(len(block))] ^= 1 << r.IntN(8)
	}
	p := http2.HeadersFrameParam{StreamID: id, EndStream: r.IntN(2) == 0, EndHeaders: true, BlockFragment: block}
	if r.IntN(4) == 0 {
		p.PadLength = uint8(r.IntN(50))
	}
	if r.IntN(4) == 0 {
		p.Priority = http2.PriorityParam{StreamDep: uint32(r.IntN(5)), Weight: uint8(r.IntN(256)), Exclusive: r.IntN(2) == 0}
	}
	if r.IntN(4) > 0 || len(block) < 2 {
		_ = w.fr.WriteHeaders(p)
		return w.taken()
	}
	p.EndHeaders = false
	at := r.IntN(len(block))
	p.BlockFragment = block[:at]
	_ = w.fr.WriteHeaders(p)
	if s.odd && r.IntN(12) == 0 {
		_ = w.fr.WritePing(false, [8]byte{})
	}
	middle := at + r.IntN(len(block)-at)
	_ = w.fr.WriteContinuation(id, false, block[at:middle])
	_ = w.fr.WriteContinuation(id, true, block[middle:])
	return w.taken()
}

// generated is a connection of such a client.
func generated(seed uint64) [][]byte {
	s := &script{r: rand.New(rand.NewPCG(seed, 1)), w: newWriter(), next: 1}
	s.odd = s.r.IntN(2) == 0
	steps := [][]byte{s.w.hello()}
	if s.r.IntN(4) == 0 {
		_ = s.w.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(s.r.IntN(1000))})
		_ = s.w.fr.WriteSettingsAck()
		if s.r.IntN(2) == 0 {
			_ = s.w.fr.WriteWindowUpdate(0, 70_000)
		}
		steps[0] = s.w.taken()
	}
	for range 2 + s.r.IntN(20) {
		b := s.step()
		if s.odd && s.r.IntN(30) == 0 && len(b) > 0 {
			b[s.r.IntN(len(b))] ^= 1 << s.r.IntN(8)
		}
		if len(b) > 0 {
			steps = append(steps, b)
		}
	}
	return steps
}

// compared is what compare has seen.
type compared struct {
	differs          string
	answered, others int
}

// compare sends the same to both servers. In a bubble. The server alone may answer one step in
// two ways: it drops what it has queued when it finds an error in the next frame. So what differs
// is looked at again.
func compare(t testing.TB, steps [][]byte) (c compared) {
	for range 5 {
		if c = compareOnce(t, steps); c.differs == "" {
			break
		}
	}
	return c
}

func compareOnce(t testing.TB, steps [][]byte) (c compared) {
	var views [2]seen
	var sides [2]*side
	for i, wraps := range []bool{true, false} {
		s := open(wraps)
		s.refuser.postpones = sometimes()
		for _, b := range steps {
			s.send(b)
		}
		sides[i], views[i] = s, s.read(t)
		s.close()
	}
	c.differs = differ(views[0], views[1])
	c.answered, c.others = sides[0].refuser.fast, sides[0].refuser.slow
	if granted := granted(steps); views[0].data > granted && c.differs == "" && views[0].data > views[1].data {
		c.differs = fmt.Sprintf("%d bytes of DATA, the client has allowed %d", views[0].data, granted)
	}
	return c
}

// sometimes postpones a third of the requests, once or more often. The connection is woken at once.
func sometimes() func(*fastpath.Request) bool {
	n := 0
	return func(r *fastpath.Request) bool {
		if n++; n%3 > 0 {
			return false
		}
		go r.Wake()()
		return true
	}
}

// granted is how much DATA a client allows, if its frames are well formed.
func granted(steps [][]byte) int64 {
	n := int64(65535)
	for b := bytes.Join(steps, nil); len(b) >= 9; {
		length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if len(b) < 9+length {
			break
		}
		if http2.FrameType(b[3]) == http2.FrameWindowUpdate && length == 4 && binary.BigEndian.Uint32(b[5:])&(1<<31-1) == 0 {
			n += int64(binary.BigEndian.Uint32(b[9:]) & (1<<31 - 1))
		}
		b = b[9+length:]
	}
	return n
}

// TestSame lets generated clients talk to a server whose connections are shared and to one whose
// are not.
func TestSame(t *testing.T) {
	begin := draw.Seed(t)
	var all compared
	for i := range *connections {
		seed := begin + uint64(i)
		steps := generated(seed)
		synctest.Test(t, func(t *testing.T) {
			c := compare(t, steps)
			if c.differs != "" {
				t.Errorf("seed %d: %s", seed, c.differs)
			}
			all.answered += c.answered
			all.others += c.others
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d requests were answered by the fast path, %d by the server", all.answered, all.others)
	if all.answered < *connections/4 || all.others < *connections/4 {
		t.Error("one of them has hardly answered")
	}
}

// FuzzFrames sends any bytes, cut into steps.
func FuzzFrames(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(bytes.Join(generated(seed), nil), uint64(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, _ uint64) {
		synctest.Test(t, func(t *testing.T) {
			if c := compare(t, cut(b)); c.differs != "" {
				t.Error(c.differs)
			}
		})
	})
}

// cut cuts bytes where frames end.
func cut(b []byte) (steps [][]byte) {
	for len(b) >= 9 && len(steps) < 200 {
		n := min(len(b), 9+int(b[0])<<16+int(b[1])<<8+int(b[2]))
		steps = append(steps, b[:n])
		b = b[n:]
	}
	if len(b) > 0 {
		steps = append(steps, b)
	}
	return steps
}

// FuzzBlocks sends any header blocks.
func FuzzBlocks(f *testing.F) {
	w := newWriter()
	for range 3 {
		f.Add(w.fields(":method", "GET", ":scheme", "http", ":path", "/no", ":authority", "a"), w.fields("x", "y"), byte(5))
	}
	f.Add([]byte{0x82, 0x86, 0x84, 0x3f, 0xe1, 0x1f}, []byte{0x80}, byte(0))
	f.Fuzz(func(t *testing.T, a, b []byte, flags byte) {
		w := newWriter()
		steps := [][]byte{w.hello()}
		for i, block := range [][]byte{a, b, a, b} {
			_ = w.fr.WriteRawFrame(http2.FrameHeaders, http2.Flags(flags)&0x2d, uint32(2*i+1), block[:min(len(block), 1<<14)])
			if flags&4 == 0 {
				_ = w.fr.WriteRawFrame(http2.FrameContinuation, 4, uint32(2*i+1), b[:min(len(b), 1<<14)])
			}
			steps = append(steps, w.taken())
		}
		synctest.Test(t, func(t *testing.T) {
			if c := compare(t, steps); c.differs != "" {
				t.Error(c.differs)
			}
		})
	})
}

var seed = flag.Uint64("seed", 0, "the only connection that TestSeed compares")

// TestSeed says what happens on one connection.
func TestSeed(t *testing.T) {
	if *seed == 0 {
		return
	}
	steps := generated(*seed)
	for _, b := range steps {
		for _, b := range cut(b) {
			if len(b) >= 9 {
				t.Logf("%s flags %x stream %d, %d bytes: %.60x", http2.FrameType(b[3]), b[4], binary.BigEndian.Uint32(b[5:]), len(b)-9, b[9:])
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		for _, wraps := range []bool{true, false} {
			s := open(wraps)
			for i, b := range steps {
				s.send(b)
				t.Logf("wrapped %t, step %d: %+v", wraps, i, s.read(t))
			}
			s.close()
		}
	})
}
