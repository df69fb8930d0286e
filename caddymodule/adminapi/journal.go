package adminapi

import "time"

// JournalPage is how many movements one answer has at most.
const JournalPage = 1000

// JournalState is where a journal begins and ends, in GET journals and GET
// sales/{id}/journal.
type JournalState struct {
	Sale  string `json:"sale"`
	Epoch int64  `json:"epoch"`
	// First and Last are the numbers of the oldest movement in Redis and of the newest.
	First int64     `json:"first"`
	Last  int64     `json:"last"`
	Began time.Time `json:"began,omitzero"`
	// Ledger and Outbox are those who follow the journal; nil: none does.
	Ledger *JournalReader `json:"ledger,omitempty"`
	Outbox *JournalReader `json:"outbox,omitempty"`
}

// JournalReader is how far a follower of a journal has come.
type JournalReader struct {
	Has    int64 `json:"has"`
	Behind int64 `json:"behind"`
	// At is when it said so, or was well last.
	At time.Time `json:"at,omitzero"`
}

// JournalStates answers GET journals.
type JournalStates struct {
	Journals []JournalState `json:"journals"`
}

// MovementPage answers GET sales/{id}/journal/movements. The command prints movements
// as they come, so it reads them as json.RawMessage.
type MovementPage[Movement any] struct {
	Sale  string `json:"sale"`
	Epoch int64  `json:"epoch"`
	// Current is the epoch of the sale in Redis: another one than was asked for where
	// Redis has lost the sale since.
	Current   int64      `json:"current"`
	Movements []Movement `json:"movements"`
}
