package h2_test

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/stockgate/stockgate/internal/fastpath"
	"github.com/stockgate/stockgate/internal/fastpath/h2"
)

// Answers are written between the server's frames, however the server cuts them, and not inside
// of its header blocks. The stream in its GOAWAY is that of the last answer.
func TestAnswersWaitForTheEndOfFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		judge := new(refuser)
		c := (&h2.Server{Fast: &fastpath.Server{Judge: judge}}).Share(server, nil, nil)
		s := &side{client: client, refuser: judge}
		s.gone.Go(func() {
			b := make([]byte, 4096)
			for {
				n, err := client.Read(b)
				s.mu.Lock()
				s.got.Write(b[:n])
				s.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
		s.gone.Go(func() { // the server reads what goes on
			for b := make([]byte, 100); ; {
				if _, err := c.Read(b); err != nil {
					return
				}
			}
		})
		w, answers := newWriter(), newWriter()
		send := func(b []byte) { _, _ = client.Write(b); synctest.Wait() }
		// write writes a frame in pieces, with a request between any two
		id := uint32(1)
		answered := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return bytes.Count(s.got.Bytes(), []byte("sold_out"))
		}
		write := func(name string, frame []byte, boundary bool) {
			for i := range frame {
				before := answered()
				if _, err := c.Write(frame[i : i+1]); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if i == len(frame)-1 && boundary {
					break
				}
				if i%5 == 0 {
					send(w.request(id, true, "GET", "/no"))
					id += 2
				}
				if answered() > before && i < len(frame)-1 {
					t.Errorf("%s: an answer was written after %d bytes", name, i+1)
				}
			}
		}
		_ = answers.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250})
		if _, err := c.Write(answers.taken()); err != nil {
			t.Fatal(err)
		}
		send(w.hello())
		_ = answers.fr.WritePing(false, [8]byte{})
		write("PING", answers.taken(), true)
		block := answers.fields(":status", "200", "x-a", "b")
		_ = answers.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 10_001, BlockFragment: block[:2]})
		write("HEADERS", answers.taken(), false)
		_ = answers.fr.WriteContinuation(10_001, true, block[2:])
		write("CONTINUATION", answers.taken(), true)
		_ = answers.fr.WriteData(10_001, true, []byte("hello"))
		write("DATA", answers.taken(), true)
		_ = answers.fr.WriteGoAway(1, http2.ErrCodeNo, []byte("debug"))
		write("GOAWAY", answers.taken(), true)
		v := s.read(t)
		if v.last < 9 || v.last > id {
			t.Errorf("GOAWAY has stream %d", v.last)
		}
		if len(v.streams) != judge.fast+1 || judge.fast < 8 {
			t.Errorf("%d answers, %d streams", judge.fast, len(v.streams))
		}
		if bytes.Count(s.got.Bytes(), []byte("debug")) != 1 {
			t.Error("GOAWAY has lost its text")
		}
		c.Close()
		_ = client.Close()
		s.gone.Wait()
	})
}
