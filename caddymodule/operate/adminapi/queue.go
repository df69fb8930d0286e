package adminapi

// MaxDrain is how many orders one request releases.
const MaxDrain = 5000

// QueueState answers GET sales/{id}/queue, and POST sales/{id}/queue/pause and resume.
type QueueState struct {
	ID string `json:"id"`
	// Waiting is how many orders wait, and AtShop how many are at the shop.
	Waiting int64 `json:"waiting"`
	AtShop  int64 `json:"at_shop"`
	// Skipped is how many of those that wait no gate of an edge that runs can send.
	Skipped int64 `json:"skipped,omitempty"`
	// OldestMs is for how long the first order has waited.
	OldestMs int64 `json:"oldest_ms"`
	// Bytes is what the orders that wait take in Redis.
	Bytes int64 `json:"bytes"`
	// Pace is how many orders a second went to the shop in the last 10 seconds.
	Pace   float64 `json:"pace"`
	Paused bool    `json:"paused"`
	// LaterMs is for how long the shop has asked to get no order.
	LaterMs int64 `json:"later_ms,omitempty"`
}

// QueueDrained answers POST sales/{id}/queue/drain.
type QueueDrained struct {
	QueueState
	// Released is how many orders this request has released.
	Released int64 `json:"released"`
}
