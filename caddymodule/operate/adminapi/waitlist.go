package adminapi

// WaitlistState is the waiting list of a sale, as the edge that answers follows it.
type WaitlistState struct {
	// People is how many are on the list, Offered how many of them have an offer now, and Most how many there may be.
	People  int   `json:"people"`
	Offered int   `json:"offered"`
	Most    int64 `json:"most"`
	// Offer is how long units are held for a person.
	Offer string `json:"offer"`
}
