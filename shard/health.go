package shard

import (
	"time"
)

// Silence is how long an edge sells without an answer from Redis.
const Silence = 5 * time.Second

// Health is the result of the last check of Redis.
type Health struct {
	Err        error
	LastAnswer time.Time
}
