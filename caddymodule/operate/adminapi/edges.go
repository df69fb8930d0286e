package adminapi

// EdgeForgotten answers DELETE edges/{edge}.
type EdgeForgotten struct {
	ID string `json:"id"`
	// WasSilent: there was a warning about it. false: nothing was changed.
	WasSilent bool `json:"was_silent"`
}
