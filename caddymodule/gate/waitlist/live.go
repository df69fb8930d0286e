package waitlist

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/filters/refuse"
)

const (
	// quietLooks is after how many looks without news a stream sends a comment, so that no proxy takes it for dead.
	quietLooks = 3
	// readWithin is how long a client may take to read an event.
	readWithin = 10 * time.Second
	// reconnectIn and reconnectSpread are after how many ms a client opens a stream again that has ended, so that not
	// all come back together.
	reconnectIn, reconnectSpread = 1000, 3000
)

// within is a wait that ends before the server cuts the answer off.
func (l *WaitlistHandler) within(wait time.Duration) time.Duration {
	if l.openFor > 0 {
		return min(wait, l.openFor)
	}
	return wait
}

// awaitNews waits as long as the client prefers, until there is other news at the place than it knows: all but a change
// of the place alone. It returns at once where as many clients wait as may. left: its client has gone.
func (l *WaitlistHandler) awaitNews(r *http.Request, a *asker, answer http.Header) (left bool) {
	prefers := waiting.Patience(r)
	if prefers <= 0 {
		return false
	}
	watch := a.runtime.Watch(a.sale, a.buyer)
	if watch == nil {
		return false
	}
	defer watch.Close()
	answer["Preference-Applied"] = []string{"wait=" + strconv.Itoa(int(prefers/time.Second))}
	timer := time.NewTimer(l.within(prefers))
	defer timer.Stop()
	tag, _ := knownTag(r.Header, "")
	heard := newsIn(tag)
	for {
		s := a.ask(r.Context())
		switch {
		case !s.there || s.known && s.State == "ended" || watch.IsOver():
			return false
		case s.known:
			watch.For(s.cell)
			news := newsIn(s.tag())
			if heard == "" {
				heard = news
			}
			if news != heard {
				return false
			}
		}
		select {
		case <-watch.News:
		case <-timer.C:
			return false
		case <-l.down: // it comes back to the next configuration, not all clients at once
			answer["Retry-After"] = []string{strconv.FormatInt(1+refuse.Spread(reconnectSpread/1000), 10)}
			return false
		case <-r.Context().Done():
			return true
		}
	}
}

// takesEvents reports whether a client asks for server-sent events.
func takesEvents(h http.Header) bool {
	for _, line := range h["Accept"] {
		if !namesEvents(line) {
			continue
		}
		for one := range strings.SplitSeq(line, ",") {
			if kind, params, err := mime.ParseMediaType(one); err == nil && kind == eventStream && params["q"] != "0" {
				return true
			}
		}
	}
	return false
}

const eventStream = "text/event-stream"

// namesEvents reports whether a line of Accept may ask for server-sent events.
func namesEvents(line string) bool {
	return len(line) >= len(eventStream) && strings.Contains(strings.ToLower(line), eventStream)
}

// stream sends what a person is told as server-sent events: at once when there is news, and at intervals when only
// the place has changed. It returns false where as many clients wait as may: the request is answered as any other.
func (l *WaitlistHandler) stream(w http.ResponseWriter, r *http.Request, a *asker) (over bool) {
	watch := a.runtime.Watch(a.sale, a.buyer)
	if watch == nil {
		return false
	}
	defer watch.Close()
	if s := a.ask(r.Context()); s.known && s.State == "ended" && r.Header.Get("Last-Event-ID") == "e" {
		w.WriteHeader(http.StatusNoContent) // the client does not connect again then
		return true
	}
	h := w.Header()
	h["Content-Type"], h["X-Accel-Buffering"] = typeEvents, noBuffering
	if r.Method == http.MethodHead {
		return true
	}
	e := events{w: w, to: http.NewResponseController(w)}
	if !e.send(strconv.AppendInt([]byte("retry: "), reconnectIn+refuse.Spread(reconnectSpread), 10)) {
		return true
	}
	var end <-chan time.Time
	if l.openFor > 0 {
		timer := time.NewTimer(l.openFor)
		defer timer.Stop()
		end = timer.C
	}
	looks := time.NewTicker(timing.Place.Now())
	defer looks.Stop()
	for byClock := true; ; { // the first event has what is known now
		s := a.ask(r.Context())
		if !s.there || watch.IsOver() {
			return true
		}
		if s.known {
			watch.For(s.cell)
		}
		if !e.tell(&s, byClock) {
			return true
		}
		select {
		case <-watch.News:
			byClock = false
		case <-looks.C:
			byClock = true
		case <-end:
			return true
		case <-l.down:
			return true
		case <-r.Context().Done():
			return true
		}
	}
}

var typeEvents, noBuffering = []string{eventStream}, []string{"no"}

// events writes a stream.
type events struct {
	w     http.ResponseWriter
	to    *http.ResponseController
	tag   string // of the last event
	quiet int    // looks since something was sent
}

// tell sends an event if there is news, or, by the clock, a comment if there was nothing for long. False: the stream is over.
func (e *events) tell(s *standing, byClock bool) bool {
	if byClock {
		e.quiet++
	}
	tag := e.tag
	if s.known {
		tag = s.tag()
	}
	switch {
	case tag != e.tag && (byClock || newsIn(tag) != newsIn(e.tag)):
		e.tag = tag
		var room [mostTold]byte
		b := append(append(room[:0], "id: "...), tag...)
		return e.send(s.append(append(b, "\ndata: "...))) && s.State != "ended"
	case e.quiet >= quietLooks:
		return e.send([]byte(":"))
	}
	return true
}

// send sends the lines of an event. It returns false if the client does not read, or has left.
func (e *events) send(lines []byte) bool {
	e.quiet = 0
	_ = e.to.SetWriteDeadline(time.Now().Add(readWithin)) // a server without deadlines waits
	_, err := e.w.Write(append(lines, "\n\n"...))
	if err == nil {
		err = e.to.Flush()
	}
	_ = e.to.SetWriteDeadline(time.Time{}) // over HTTP/2 it would end the stream, whatever is written
	return err == nil
}
