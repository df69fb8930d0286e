package dashboard

import (
	"context"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// actFrame is an act that is scheduled, or was done.
type actFrame struct {
	Number int64  `json:"number"`
	At     int64  `json:"at"` // ms
	What   string `json:"what"`
	Who    string `json:"who"`
	Done   string `json:"done,omitempty"` // what has come of it; empty: it is to come
	Failed bool   `json:"failed,omitempty"`
	Stale  bool   `json:"stale,omitempty"` // it is not going to be done
}

const (
	// comingActs and pastActs are how many acts the page shows.
	comingActs, pastActs = 10, 3
)

// scheduled reads the acts of a sale: the last ones that were done, the newest first, then those that are to come.
func scheduled(ctx context.Context, d *edgeruntime.Runtime, l *edge.Listing) ([]actFrame, error) {
	coming, done, err := d.Store.Acts(ctx, l.Sale)
	if err != nil {
		return nil, err
	}
	var all []actFrame
	for i := len(done) - 1; i >= max(0, len(done)-pastActs); i-- {
		all = append(all, actFrameOf(&done[i]))
	}
	for i := range coming[:min(len(coming), comingActs)] {
		all = append(all, actFrameOf(&coming[i]))
	}
	return all, nil
}

func actFrameOf(a *reservation.ScheduledAct) actFrame {
	f := actFrame{Number: a.Number, At: a.At.UnixMilli(), What: a.What(), Who: a.By, Failed: a.Failed, Stale: a.Stale}
	if !a.DoneAt.IsZero() {
		f.Done = a.Outcome()
	}
	return f
}
