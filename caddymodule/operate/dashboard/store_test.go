package dashboard

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// The page tells what is not known from what is nothing.
func TestStoreOf(t *testing.T) {
	const giB = 1 << 30
	syncs := edgeruntime.StoreSyncs{Median: 800 * time.Microsecond, Late: 3 * time.Millisecond, Count: 9}
	for want, s := range map[string]*edgeruntime.StoreStatus{
		`null`: nil,
		`{"pid":7,"up":true,"files":9,"free":10737418240,"lasts":null,"paced":false,"p50":null,"p99":null}`:                   {PID: 7, Up: true, Files: 9, Free: 10 * giB, Pace: -1},
		`{"pid":7,"up":true,"files":9,"free":10737418240,"lasts":null,"paced":true,"p50":0.8,"p99":3,"rewriting":true}`:       {PID: 7, Up: true, Files: 9, Free: 10 * giB, Syncs: syncs, Rewriting: true},
		`{"pid":0,"up":false,"restarts":2,"files":9,"free":1024,"short":true,"lasts":0.5,"paced":true,"p50":null,"p99":null}`: {Restarts: 2, Files: 9, Free: 1024, Pace: 2048},
	} {
		if got, err := json.Marshal(storeOf(s)); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
