package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// A step that takes long says that it goes on, and nothing once it has ended.
func TestTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		stop := tick(&stderr, "go build")
		time.Sleep(2*tickEvery + time.Second)
		stop()
		time.Sleep(tickEvery)
		if got := stderr.String(); got != "go build goes on, for 15s so far\ngo build goes on, for 30s so far\n" {
			t.Errorf("%q", got)
		}
	})
}
