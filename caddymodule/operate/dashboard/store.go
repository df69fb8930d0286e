package dashboard

import "github.com/stockgate/stockgate/caddymodule/edgeruntime"

// storeFrame is what the page shows of the server of `store`.
type storeFrame struct {
	PID       int      `json:"pid"` // 0: none runs
	Up        bool     `json:"up"`
	Restarts  int      `json:"restarts,omitempty"`
	Files     int64    `json:"files"`           // bytes
	Free      int64    `json:"free"`            // bytes that are left on the disk
	Short     bool     `json:"short,omitempty"` // the disk may be full soon
	Lasts     *float64 `json:"lasts"`           // seconds that the disk lasts; nil: the files do not grow, or it is not known
	Paced     bool     `json:"paced"`           // it is known how fast the files grow
	P50       *float64 `json:"p50"`             // ms of a sync; nil: none was measured
	P99       *float64 `json:"p99"`
	Rewriting bool     `json:"rewriting,omitempty"`
}

// storeOf returns the frame of a store; nil: there is none.
func storeOf(s *edgeruntime.StoreStatus) *storeFrame {
	if s == nil {
		return nil
	}
	f := &storeFrame{PID: s.PID, Up: s.Up, Restarts: s.Restarts, Files: s.Files, Free: s.Free, Short: s.IsShort(), Paced: s.Pace >= 0, Rewriting: s.Rewriting}
	if lasts, growing := s.Lasts(); growing {
		f.Lasts = known(lasts.Seconds())
	}
	if s.Syncs.Count > 0 {
		f.P50, f.P99 = known(1000*s.Syncs.Median.Seconds()), known(1000*s.Syncs.Late.Seconds())
	}
	return f
}
