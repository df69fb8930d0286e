package stampede

import (
	"sync"
	"time"
)

// Progress is how far a crowd has come.
type Progress struct {
	Elapsed time.Duration
	// Sent are all requests, Waiting those without an answer yet.
	Sent, Waiting int
	// Accepted, Refused and Failed are as in the tally.
	Accepted, Refused, Failed int
	// P99 is of the latency so far, Late of how late orders of a schedule began.
	P99, Late time.Duration
}

// report calls Progress until end is called, which waits for the last call.
func (r *run) report() (end func()) {
	if r.Progress == nil || r.Every <= 0 {
		return func() {}
	}
	over := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		tick := time.NewTicker(r.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.Progress(r.book.progress(time.Since(r.started)))
			case <-over:
				return
			}
		}
	})
	return func() { close(over); reporter.Wait() }
}

func (b *notebook) progress(elapsed time.Duration) Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Progress{
		Elapsed: elapsed, Sent: b.t.Requests + b.waiting, Waiting: b.waiting,
		Accepted: b.t.Accepted, Refused: b.t.TotalRefused(), Failed: b.t.TotalFailed(),
		P99: b.times.latency().P99, Late: b.late.latency().P99,
	}
}
