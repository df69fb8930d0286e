package shard

import (
	"time"
)

// silence is how long an edge sells without a word from Redis.
const Silence = 5 * time.Second

// health is what the last look at Redis found.
type Health struct {
	Err        error
	LastAnswer time.Time
}
