package adminapi

// KeyReplacement asks for POST key/replace.
type KeyReplacement struct {
	// OldKey is a copy of the lost key in PEM. With it the identity secret is kept.
	OldKey string `json:"old_key,omitempty"`
	// BeginAnew accepts that without OldKey everything counted by identity starts over.
	BeginAnew bool `json:"begin_anew,omitempty"`
	// Force replaces the key although other edges listen on this Redis.
	Force bool `json:"force,omitempty"`
}

// KeyReplaced answers POST key/replace.
type KeyReplaced struct {
	// Lost was registered, Key is now.
	Lost string `json:"lost"`
	Key  string `json:"key"`
	// SecretKept says that limits go on counting.
	SecretKept bool `json:"secret_kept"`
}
