package journal

import "time"

// MirrorState says how the mirror of a sale goes: what its edge notes with the lease.
type MirrorState struct {
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
