// Package loop has what background goroutines share: they work in rounds, and wait between them.
package loop

import (
	"context"
	"time"
)

// Every calls do at once and then each time d has passed, or sooner when it is woken, until ctx ends.
// No channel wakes it where wake is nil.
func Every(ctx context.Context, d time.Duration, wake <-chan struct{}, do func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ticker.C:
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// Rest waits for d, or until it is woken; false: ctx has ended. No channel wakes it where wake is nil.
func Rest(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}
