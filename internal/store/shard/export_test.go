package shard

import (
	"time"
)

// Steady bounds a clock of Redis by the replies that report it.
type Steady struct{ steady }

func (s *Steady) Add(sent, arrived time.Time, ms int64) bool { return s.add(sent, arrived, ms) }

func (s *Steady) Known() bool { return s.known() }

func (s *Steady) Latest(moment time.Time) int64 { return s.latest(moment) }
