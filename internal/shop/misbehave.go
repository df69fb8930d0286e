package shop

import (
	"net/http"
	"time"
)

// before does what a plan has in store before the decision; false: the request
// is over, and no order is written.
func (s *Shop) before(w http.ResponseWriter, r *http.Request, p plan) bool {
	// The client's leaving does not shorten it: many shops work on, and write
	// the order when no client waits for it any more.
	if !s.wait(p.delay) {
		closing().write(w)
		return false
	}
	switch p.end.name {
	case ruleStatus:
		answer{Status: p.end.status, Code: p.end.status, Msg: "told to fail"}.write(w)
		return false
	case ruleHang:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		drop(w)
		return false
	case ruleDropBefore:
		drop(w)
		return false
	case rulePanic:
		panic("shop: told to panic")
	}
	return true
}

// after does what a plan has in store when the order is written; false: the
// answer has been given, or never will be.
func (s *Shop) after(w http.ResponseWriter, r *http.Request, p plan) bool {
	if !s.wait(p.delayAfter) {
		drop(w)
		return false
	}
	switch p.end.name {
	case rule500After:
		answer{Status: http.StatusInternalServerError, Code: 500, Msg: "told to fail after the order"}.write(w)
		return false
	case ruleDropAfter:
		drop(w)
		return false
	case ruleDieAfter:
		s.die()
		drop(w)
		return false
	case ruleRedirect:
		http.Redirect(w, r, "/thanks", http.StatusFound)
		return false
	}
	return true
}

// wait returns false if the shop is closed meanwhile.
func (s *Shop) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closed:
		return false
	}
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// HTTP/2 has no connection to take: reset the stream.
		panic(http.ErrAbortHandler)
	}
	conn.Close()
}

func closing() answer {
	return answer{Status: http.StatusServiceUnavailable, Code: 503, Msg: "the shop is closed"}
}
