package forward

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

const (
	// readersPerSlot is the number of clients that may be reading answers, for each of
	// max_in_flight.
	readersPerSlot = 4
	// stalledAfter is how long a client may read nothing of its answer when there is no room
	// for another reader.
	stalledAfter = time.Second
	// sayCutEvery is the minimum time between two log messages about clients that were cut
	// off.
	sayCutEvery = time.Minute
)

// readers are the clients of a gate that are reading the shop's answer. Their attempts are
// settled and hold no in-flight slot, so readers bounds the memory and connections that
// they cost: above the bound, it cuts off the client that has read nothing for the longest
// time. The outcome stands, and a client that repeats its idempotency key gets the answer.
type readers struct {
	most  int
	clock func() time.Duration // only goes forward, and is never 0
	log   *zap.Logger

	mu     sync.Mutex
	all    []*reader
	n      atomic.Int64  // len(all)
	unsaid int           // clients that were cut off and are not logged yet
	sayAt  time.Duration // time of the next log message at the earliest
}

// reader is one client that is reading its answer.
type reader struct {
	w       http.ResponseWriter
	conn    net.Conn // nil: not known
	at      int      // in all, from 1; 0: not there
	cutAt   time.Duration
	waiting atomic.Int64 // when the write that is under way began, by the clock; 0: there is none
}

func newReaders(maxInFlight int, log *zap.Logger) *readers {
	started := time.Now().Add(-time.Nanosecond)
	return &readers{most: readersPerSlot * maxInFlight, log: log, clock: func() time.Duration { return time.Since(started) }}
}

// join counts a client whose answer may be written now, and makes room for it.
func (rs *readers) join(r *reader) {
	if cut := rs.makeRoom(r); cut > 0 {
		rs.log.Warn("clients were cut off that did not read the shop's answer: their orders stand",
			zap.Int("clients", cut), zap.Int("most_readers", rs.most))
	}
}

// makeRoom does the work of join. It returns how many clients were cut off since the last
// log message; 0: there is nothing to log now.
func (rs *readers) makeRoom(r *reader) (say int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, r)
	r.at = len(rs.all)
	rs.n.Store(int64(len(rs.all)))
	over := len(rs.all) - rs.most
	if over <= 0 {
		return 0
	}
	now := rs.clock()
	for _, stalled := range rs.longestStalled(over, now) {
		if stalled.cutAt == 0 {
			meter.All().CutReaders.Inc()
			rs.unsaid++
		}
		stalled.cutOff(now)
	}
	if rs.unsaid == 0 || now < rs.sayAt {
		return 0
	}
	say, rs.unsaid, rs.sayAt = rs.unsaid, 0, now+sayCutEvery
	return say
}

// leave is called when the handlers have returned. Nothing touches the client after it.
func (rs *readers) leave(r *reader) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.at == 0 {
		return
	}
	last := len(rs.all) - 1
	rs.all[r.at-1] = rs.all[last]
	rs.all[r.at-1].at = r.at
	rs.all[last] = nil
	rs.all = rs.all[:last]
	r.at = 0
	rs.n.Store(int64(last))
}

// full reports whether there is no room for another answer although no client has stalled: the
// shop writes its answers slowly, or clients read more than the edge can send.
func (rs *readers) full() bool {
	if rs.n.Load() < int64(rs.most) {
		return false
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := rs.clock()
	return len(rs.all) >= rs.most && !slices.ContainsFunc(rs.all, func(r *reader) bool { return r.stalled(now) > 0 })
}

// stalled returns how long the client has read nothing; 0: not long enough to be cut off.
func (r *reader) stalled(now time.Duration) time.Duration {
	since := time.Duration(r.waiting.Load())
	if since == 0 || now-since < stalledAfter {
		return 0
	}
	return now - since
}

// longestStalled returns at most n stalled readers. A reader that was cut off and has not
// left yet is among them, so that it makes room for one client only.
func (rs *readers) longestStalled(n int, now time.Duration) (found []*reader) {
	for range n {
		var longest *reader
		var most time.Duration
		for _, r := range rs.all {
			if s := r.stalled(now); s > most && !slices.Contains(found, r) {
				longest, most = r, s
			}
		}
		if longest == nil {
			break
		}
		found = append(found, longest)
	}
	return found
}

// cutOff aborts the answer, so that the client sees that it is incomplete. In HTTP/2 it
// resets the stream; if the connection does not take that frame either, cutOff closes it.
func (r *reader) cutOff(now time.Duration) {
	if r.cutAt == 0 {
		r.cutAt = now
	}
	if now-r.cutAt < stalledAfter && http.NewResponseController(innermost(r.w)).SetWriteDeadline(time.Unix(1, 0)) == nil {
		return
	}
	if conn, ok := r.conn.(*tls.Conn); ok {
		_ = conn.NetConn().Close() // a TLS connection would send close_notify first, and wait
	} else if r.conn != nil {
		_ = r.conn.Close()
	}
}

// innermost returns the server's own writer: the writers around it are for one goroutine.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// WithConn keeps the connection in the context of its requests, so that a client that reads
// nothing can be cut off. It is for http.Server.ConnContext.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// init prepares the reader for the client of a request.
func (r *reader) init(w http.ResponseWriter, req *http.Request) {
	r.w = w
	r.conn, _ = req.Context().Value(connKey{}).(net.Conn)
}

// wait and took are called before and after a write to the client.
func (rs *readers) wait(r *reader) { r.waiting.Store(int64(rs.clock())) }
func (rs *readers) took(r *reader) { r.waiting.Store(0) }
