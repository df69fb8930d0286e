package forward

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/outcome"
)

// onePiece is the number of bytes written to a client at once.
const onePiece = 32 << 10

// heldAnswer stands between the shop and the client. Up to MaxAnswer bytes, the client gets
// nothing of the shop's answer before the outcome is decided and Redis knows it.
type heldAnswer struct {
	*caddyhttp.ResponseWriterWrapper
	// flight decides from what has arrived of the answer, until it needs no more.
	flight *Forwarding
	// copy collects the answer too. A short answer is then decided only when it is complete:
	// as soon as the order is sold, a repeat must find the stored answer. nil: the answer is
	// not stored.
	copy *Copy

	status  int // as written by the handlers behind the gate; 0: nothing yet
	kept    []byte
	keeping bool
	asked   bool // decide has been called
	left    bool // the head has been written to the client
}

// WriteHeader takes the status. It decides most outcomes.
func (a *heldAnswer) WriteHeader(status int) {
	if status < 200 {
		// An interim answer says nothing about the order, and a client that does not read it
		// would keep the attempt's in-flight slot. 101 is no answer here: no upgrade was
		// requested.
		return
	}
	if a.status != 0 {
		return
	}
	a.status = status
	a.copy.begin(status, a.Header())
	if !a.copy.wanted() && a.ask() {
		a.begin()
		return
	}
	a.keeping = true
}

// begin writes the head. A final answer is written only after the forwarding has ended.
func (a *heldAnswer) begin() {
	if a.flight.PutOff != nil {
		return
	}
	a.left = true
	a.ResponseWriter.WriteHeader(a.status)
}

// send writes to the client in pieces, so that a slow client that makes progress does not
// count as stalled.
func (a *heldAnswer) send(p []byte) (n int, err error) {
	if a.flight.PutOff != nil {
		return len(p), nil
	}
	readers, client := a.flight.Slot.of.readers, &a.flight.reader
	defer readers.took(client)
	for {
		piece := p[n:min(len(p), n+onePiece)]
		readers.wait(client)
		m, err := a.ResponseWriter.Write(piece)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// ask calls decide for the first time, with the head alone.
func (a *heldAnswer) ask() bool {
	a.asked = true
	return a.flight.decide(a.status, nil, false, false)
}

// Write keeps back what must not reach the client yet.
func (a *heldAnswer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.keeping {
		return a.send(p)
	}
	a.copy.add(p)
	if !a.asked && !a.copy.wanted() && a.ask() {
		if err := a.letGo(); err != nil {
			return 0, err
		}
		return a.send(p)
	}
	if len(a.kept)+len(p) <= cmp.Or(a.flight.MaxAnswer, outcome.DefaultMaxBody) {
		a.kept = append(a.kept, p...)
		return len(p), nil
	}
	a.flight.decide(a.status, a.kept, false, true)
	if err := a.letGo(); err != nil {
		return 0, err
	}
	return a.send(p)
}

// ReadFrom copies through Write: the server's own ReadFrom would hide the progress.
func (a *heldAnswer) ReadFrom(r io.Reader) (int64, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return io.Copy(struct{ io.Writer }{a}, r)
}

// FlushError flushes what may reach the client; what is held back stays.
func (a *heldAnswer) FlushError() error {
	if a.keeping || a.status == 0 {
		return nil
	}
	readers, client := a.flight.Slot.of.readers, &a.flight.reader
	readers.wait(client)
	defer readers.took(client)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush is FlushError without the error.
func (a *heldAnswer) Flush() { _ = a.FlushError() }

// Hijack is refused: no gate would see what a client sends to the shop through a tunnel.
func (a *heldAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// finish is called when the handlers behind the gate have returned without an error: the
// answer is complete.
func (a *heldAnswer) finish() error {
	if !a.keeping {
		return nil
	}
	a.copy.end()
	a.flight.decide(a.status, a.kept, true, true)
	return a.letGo()
}

func (a *heldAnswer) letGo() error {
	a.keeping = false
	kept := a.kept
	a.kept = nil
	a.begin()
	_, err := a.send(kept)
	return err
}

// Interface guards
var (
	_ http.ResponseWriter = (*heldAnswer)(nil)
	_ io.ReaderFrom       = (*heldAnswer)(nil)
	_ http.Flusher        = (*heldAnswer)(nil)
	_ http.Hijacker       = (*heldAnswer)(nil)
)
