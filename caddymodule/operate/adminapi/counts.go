package adminapi

import "time"

// SaleCounted answers GET sales/{id}/counts: what all edges have counted of a sale since it opened.
type SaleCounted struct {
	Sale     string             `json:"sale"`
	Attempts []AttemptsCounted  `json:"attempts"`
	Shadow   []AttemptsCounted  `json:"shadow"`
	Reserves TimesCounted       `json:"reserves"` // of reserve requests
	Won      TimesCounted       `json:"won"`      // until buyers heard that they got the goods
	Lost     TimesCounted       `json:"lost"`     // until buyers heard that they did not
	Edges    []EdgeCountedSince `json:"edges"`
}

// AttemptsCounted are the attempts with one outcome, and reason of a refusal.
type AttemptsCounted struct {
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason,omitempty"`
	Attempts int64  `json:"attempts"`
}

// TimesCounted say how long something took; null: nothing was measured.
type TimesCounted struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P99   *float64 `json:"p99_ms"`
}

// EdgeCountedSince is what the edges of one name have counted, of one machine.
type EdgeCountedSince struct {
	Name string `json:"name"`
	// IDs name its processes that are heard, or the last one if it is silent.
	IDs []string `json:"ids"`
	// Live is how many processes are heard.
	Live int64 `json:"live"`
	// Sells: those that are heard may sell.
	Sells bool `json:"sells"`
	// Silent: the last process was not stopped, and is not heard any more.
	Silent    bool      `json:"silent"`
	Heard     time.Time `json:"heard"`
	PerMinute int64     `json:"per_minute"` // attempts, lately
	Attempts  int64     `json:"attempts"`
}
