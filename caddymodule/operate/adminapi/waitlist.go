package adminapi

import "time"

// WaitlistState answers GET sales/{id}/waitlist, and POST sales/{id}/waitlist/pause and resume: the list as the edge that
// answers follows it, and what was counted of it over its life and all edges.
type WaitlistState struct {
	ID string `json:"id"`
	// People is how many are on the list, Offered how many of them have an offer now, and Most how many there may be.
	People  int   `json:"people"`
	Offered int   `json:"offered"`
	Most    int64 `json:"most"`
	// Offer is how long units are held for a person.
	Offer string `json:"offer"`
	// Entered is how many people have entered, and Offers how many offers were made.
	Entered int64 `json:"entered"`
	Offers  int64 `json:"offers"`
	// Accepted, Lapsed, Left, Closed and Other are how many entries have ended, by why. Other: the person may not buy any
	// more, or was taken off.
	Accepted int64 `json:"accepted"`
	Lapsed   int64 `json:"lapsed"`
	Left     int64 `json:"left"`
	Closed   int64 `json:"closed"`
	Other    int64 `json:"other"`
	// OffersPausedSince is since when an operator lets no offer be made; absent: offers are made.
	OffersPausedSince time.Time `json:"offers_paused_since,omitzero"`
}
