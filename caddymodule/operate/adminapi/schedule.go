package adminapi

import "github.com/stockgate/stockgate/internal/store/reservation"

// SaleSchedule answers GET sales/{id}/schedule.
type SaleSchedule struct {
	ID       string `json:"id"`
	Timezone string `json:"timezone"`
	// Scheduled are the acts that are to come, by time, Performed the last ones that are done or failed, the newest
	// last.
	Scheduled []reservation.ScheduledAct `json:"scheduled"`
	Performed []reservation.ScheduledAct `json:"performed"`
}

// ActPlanned answers POST sales/{id}/schedule.
type ActPlanned struct {
	ID  string                    `json:"id"`
	Act *reservation.ScheduledAct `json:"act"`
	// Already: the same act was planned for the same time before, and nothing was changed.
	Already bool `json:"already,omitempty"`
	// Warnings say what is likely to be a mistake, although it was done.
	Warnings []string `json:"warnings,omitempty"`
	Timezone string   `json:"timezone"`
}

// ActCancelled answers DELETE sales/{id}/schedule/{number}: the act that is not to come any more, or that failed and
// is forgotten.
type ActCancelled struct {
	ID       string                    `json:"id"`
	Act      *reservation.ScheduledAct `json:"act"`
	Timezone string                    `json:"timezone"`
}
