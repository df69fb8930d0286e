package adminapi

// ReturnsRequest asks for POST sales/{id}/returns: units of many orders come back, up to MaxBulk returns.
type ReturnsRequest struct {
	Returns []NamedReturn `json:"returns"`
	// DryRun reports what would happen and changes nothing.
	DryRun bool `json:"dry_run"`
}

// NamedReturn is one return of an order. Its lines need a region only where the order has the item in
// several. Without lines, all that is left of the order comes back.
type NamedReturn struct {
	// Name is a reservation's id or the shop's ref.
	Name string `json:"name"`
	ReturnRequest
}

// ReturnsAnswer says what became of a ReturnsRequest.
type ReturnsAnswer struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Returned are the returns that this request has made, and Units theirs; Already were made before it.
	Returned int   `json:"returned"`
	Units    int64 `json:"units"`
	Already  int   `json:"already"`
	// Failed are those that were not made.
	Failed []FailedReturn `json:"failed,omitempty"`
}

// FailedReturn is a return that was not made.
type FailedReturn struct {
	// Index is its place in the request, from 0.
	Index int    `json:"index"`
	Name  string `json:"name"`
	Error string `json:"error"`
}
