package recovery

// Difference is one value in Redis that differs from the history.
type Difference struct {
	// Kind is a part of a shard (record, cell, limit, binding, deadlines, in_doubt,
	// unbacked, tombstones, adjustment, return), or journal, ledger, oversold, shop.
	Kind string `json:"kind"`
	// Name is a reservation, a cell, the field of a limit or of a binding, an adjustment.
	Name string `json:"name,omitempty"`
	// Text is a sentence that says what differs. Cause says how that may have happened.
	// Repair says what a repair does, or what the operator has to do.
	Text   string `json:"text"`
	Cause  string `json:"cause,omitempty"`
	Repair string `json:"repair,omitempty"`
	// Repairable says that a run with Options.Repair repairs it, Repaired that this run did.
	Repairable bool `json:"repairable,omitempty"`
	Repaired   bool `json:"repaired,omitempty"`
}

// Report is what a run has found.
type Report struct {
	Sale string `json:"sale"`
	// Run is the run's id, which the journal has with every repair.
	Run string `json:"run"`
	// Against is what Redis was compared with: the ledger and the journal after it, the
	// journal alone or, where its beginning is gone, Redis's own reservations.
	Against string `json:"against"`
	// Epoch and Seq are the position in the journal up to which it was compared.
	Epoch int64 `json:"epoch"`
	Seq   int64 `json:"seq"`
	// Reservations, Cells and Limits are how many were compared.
	Reservations int `json:"reservations"`
	Cells        int `json:"cells"`
	Limits       int `json:"limits"`
	// Differences lists the first MaxDifferences of Found differences. Repaired is how
	// many this run has repaired, Left how many remain.
	Differences []Difference `json:"differences"`
	Found       int          `json:"found"`
	Repaired    int          `json:"repaired"`
	Left        int          `json:"left"`
	// Agrees says that the comparison was completed and no difference is left.
	Agrees bool `json:"agrees"`
	// Notes are what was not compared, and why.
	Notes []string `json:"notes,omitempty"`
}

// MaxDifferences bounds the differences that a report lists.
const MaxDifferences = 1000

// add counts a difference, and lists it while there is room.
func (r *Report) add(d Difference) {
	r.Found++
	if d.Repaired {
		r.Repaired++
	}
	r.Left = r.Found - r.Repaired
	if len(r.Differences) < MaxDifferences {
		r.Differences = append(r.Differences, d)
	}
}

// The values of Against: where the history comes from.
const (
	AgainstLedger  = "ledger"
	AgainstJournal = "journal"
	AgainstItself  = "redis"
)

// source names the source of the history in a sentence.
func (r *Report) source() string {
	return map[string]string{AgainstLedger: "the ledger", AgainstJournal: "the journal", AgainstItself: "the reservations"}[r.Against]
}
