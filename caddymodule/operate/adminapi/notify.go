package adminapi

// NotifyTested answers POST notify/test: the receiver has taken the message.
type NotifyTested struct {
	// Form is how the receiver reads messages: slack or webhook.
	Form string `json:"form"`
	// Answer is the status of its answer, and TookMs how long it took.
	Answer int   `json:"answer"`
	TookMs int64 `json:"took_ms"`
}
