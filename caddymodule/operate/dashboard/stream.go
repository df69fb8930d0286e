package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// maxViewers bounds the streams of an edge.
	maxViewers = 1_000
	// writeWithin is how long a viewer may take to read a frame.
	writeWithin = 10 * time.Second
)

// greeting is the first event of a stream.
type greeting struct {
	Sale    string       `json:"sale_id"`
	User    string       `json:"user,omitempty"`
	Acts    []string     `json:"acts"`
	History [][]*float64 `json:"history"` // points, the oldest first
}

// stream sends a viewer what is new until it leaves, the server shuts down, or the collector
// ends.
func (s *Dashboard) stream(w http.ResponseWriter, r *http.Request, c *collector, user string) error {
	id := r.URL.Query().Get("sale")
	if id != "" && !sale.IsID(id) {
		return answerError(w, http.StatusBadRequest, "sale must be the id of a sale")
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if !c.enter(id) {
		return answerError(w, http.StatusServiceUnavailable, fmt.Sprintf("%d viewers are looking already", maxViewers))
	}
	defer c.leave(id)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to := http.NewResponseController(w)
	hello, err := json.Marshal(c.greet(id, user, s.actsOf(r)))
	if err != nil {
		return err
	}
	defer func() { _ = to.SetWriteDeadline(time.Time{}) }() // the connection may serve another request
	send := func(event string, body []byte) bool {
		_ = to.SetWriteDeadline(time.Now().Add(writeWithin)) // a server without deadlines waits
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, body); err != nil {
			return false
		}
		return to.Flush() == nil
	}
	for ok := send("hello", hello); ok; ok = send("state", c.frame(id)) {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.down:
			return nil
		case <-c.next():
			if c.next() == nil {
				return nil
			}
		}
	}
	return nil
}

// greet returns what a viewer learns first.
func (c *collector) greet(id, user string, acts []string) greeting {
	g := greeting{User: user, Acts: acts, History: [][]*float64{}}
	s, l := c.find(id)
	if s == nil {
		return g
	}
	g.Sale = l.Sale.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.history.all() {
		g.History = append(g.History, p.row())
	}
	return g
}
