package waitlist

import "net/http"

// PollIn is in how many seconds a person may ask again when so many are on the list, and LeastPoll the least of it.
var PollIn, LeastPoll = pollIn, leastPoll

// Told is what a person is told at a place.
type Told = told

// Append appends what is told.
func (t *told) Append(b []byte) []byte { return t.append(b) }

// SendEvent sends lines of a stream, and reports whether the client has read them.
func SendEvent(w http.ResponseWriter, lines string) bool {
	e := events{w: w, to: http.NewResponseController(w)}
	return e.send([]byte(lines))
}
