package forward

import (
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Readers are the clients of a gate, with the test's clock.
type Readers struct{ *readers }

// Reader is one of them.
type Reader struct{ reader }

// NewReaders makes room for the readers of maxInFlight attempts.
func NewReaders(maxInFlight int, clock func() time.Duration, log *zap.Logger) Readers {
	rs := newReaders(maxInFlight, log)
	rs.clock = clock
	return Readers{rs}
}

func (rs Readers) Join(w http.ResponseWriter, conn net.Conn) *Reader {
	r := &Reader{reader{w: w, conn: conn}}
	rs.join(&r.reader)
	return r
}

func (rs Readers) Leave(r *Reader) { rs.leave(&r.reader) }
func (rs Readers) Wait(r *Reader)  { rs.wait(&r.reader) }
func (rs Readers) Took(r *Reader)  { rs.took(&r.reader) }
func (rs Readers) Full() bool      { return rs.full() }
