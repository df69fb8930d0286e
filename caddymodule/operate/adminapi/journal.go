package adminapi

import "time"

// JournalPage bounds how many movements one answer has.
const JournalPage = 1000

// JournalWait bounds `?wait=`, in seconds: how long a request waits for the next movement.
const JournalWait = 60

// JournalState is where a journal begins and ends, in GET journals and GET
// sales/{id}/journal.
type JournalState struct {
	Sale  string `json:"sale"`
	Epoch int64  `json:"epoch"`
	// First and Last are the numbers of the oldest movement in Redis and of the newest.
	First int64     `json:"first"`
	Last  int64     `json:"last"`
	Began time.Time `json:"began,omitzero"`
	// Ledger and Outbox are the followers of the journal; nil: it has none.
	Ledger *JournalReader `json:"ledger,omitempty"`
	Outbox *JournalReader `json:"outbox,omitempty"`
}

// JournalReader is how far a follower of a journal has come.
type JournalReader struct {
	Has    int64 `json:"has"`
	Behind int64 `json:"behind"`
	// At is when the follower last reported its position, or last succeeded.
	At time.Time `json:"at,omitzero"`
	// Trouble is why it does not get on: it does not answer, and Has is what was last acknowledged; or
	// it can never get what it lacks. Empty: nothing.
	Trouble string `json:"trouble,omitempty"`
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
	// Current is the sale's epoch in Redis. It differs from the requested one where Redis has
	// lost the sale since.
	Current   int64      `json:"current"`
	Movements []Movement `json:"movements"`
}
