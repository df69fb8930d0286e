package forward

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// HoldBack is how much of the shop's answer is kept from the client until the
// outcome is decided.
const HoldBack = 64 << 10

// onePiece is how much is written to a client at once.
const onePiece = 32 << 10

// answer stands between the shop and the client: no byte of the shop's answer
// leaves before the outcome is decided and Redis knows it, as far as HoldBack goes.
type answer struct {
	*caddyhttp.ResponseWriterWrapper
	// flight decides by what is known of the answer, until it says that it has seen
	// enough.
	flight *Forwarding
	// copy takes the answer too, and a short one is decided when it is whole: who
	// repeats an attempt must find its answer as soon as it is sold. nil: nobody will.
	copy *Copy

	status  int // as written by the handlers behind the gate; 0: nothing yet
	kept    []byte
	keeping bool
	asked   bool // decide has been called
	left    bool // the head has been written to the client
}

// WriteHeader is where most outcomes are decided.
func (a *answer) WriteHeader(status int) {
	if status < 200 {
		// An interim answer says nothing about the order, and a client that does not read it
		// would hold the attempt's place. 101 answers nothing: no upgrade was asked for.
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

// begin writes the head. Nothing of a final answer is written before the flight has ended.
func (a *answer) begin() {
	a.left = true
	a.ResponseWriter.WriteHeader(a.status)
}

// send writes to the client in pieces, so that a slow client that makes progress does not
// count as stalled.
func (a *answer) send(p []byte) (n int, err error) {
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

// ask is the first question to decide: whether the head is enough.
func (a *answer) ask() bool {
	a.asked = true
	return a.flight.decide(a.status, nil, false, false)
}

// Write keeps what must not leave yet.
func (a *answer) Write(p []byte) (int, error) {
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
	if len(a.kept)+len(p) <= HoldBack {
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
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	return io.Copy(struct{ io.Writer }{a}, r)
}

// FlushError flushes what may leave; what is held back stays.
func (a *answer) FlushError() error {
	if a.keeping || a.status == 0 {
		return nil
	}
	readers, client := a.flight.Slot.of.readers, &a.flight.reader
	readers.wait(client)
	defer readers.took(client)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush is FlushError for those who do not want to know.
func (a *answer) Flush() { _ = a.FlushError() }

// Hijack is refused: what a client sends through a tunnel to the shop passes no gate.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// finish is called when the handlers behind the gate have returned without an
// error: the answer is whole.
func (a *answer) finish() error {
	if !a.keeping {
		return nil
	}
	a.copy.end()
	a.flight.decide(a.status, a.kept, true, true)
	return a.letGo()
}

func (a *answer) letGo() error {
	a.keeping = false
	kept := a.kept
	a.kept = nil
	a.begin()
	_, err := a.send(kept)
	return err
}

// Interface guards
var (
	_ http.ResponseWriter = (*answer)(nil)
	_ io.ReaderFrom       = (*answer)(nil)
	_ http.Flusher        = (*answer)(nil)
	_ http.Hijacker       = (*answer)(nil)
)
