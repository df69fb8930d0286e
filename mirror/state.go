package mirror

import (
	"encoding/json"
	"time"
)

// State says how the mirror of a sale goes.
type State struct {
	// At is when it was noted, and Seq is the number of the journal up to which the shop's Redis
	// has everything.
	At  time.Time `json:"at"`
	Seq int64     `json:"seq"`
	// Behind is since when the shop's Redis lacks changes; zero: it has all.
	Behind time.Time `json:"behind,omitzero"`
	// Error is why; empty: nothing is wrong.
	Error string `json:"error,omitempty"`
	// Drift is how often a key had another number than the mirror had written, since this edge
	// mirrors the sale: something else writes it. DriftAt, DriftKey, Had and Wrote are about
	// the last time.
	Drift    int64     `json:"drift,omitempty"`
	DriftAt  time.Time `json:"drift_at,omitzero"`
	DriftKey string    `json:"drift_key,omitempty"`
	Had      string    `json:"had,omitempty"`
	Wrote    string    `json:"wrote,omitempty"`
}

// text is the state as Redis keeps it.
func (s *State) text() string {
	text, _ := json.Marshal(s) // it has only texts, numbers and times
	return string(text)
}

// ParseState reads what a mirror has noted; false: it has noted nothing that can be read.
func ParseState(text string) (s State, ok bool) {
	return s, text != "" && json.Unmarshal([]byte(text), &s) == nil
}
