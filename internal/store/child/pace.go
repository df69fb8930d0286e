package child

import (
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// remembered is over how many readings pace and sync times are measured: ten minutes.
	remembered = 120
	// leastReadings is how many a pace needs: a minute.
	leastReadings = 12
)

// pace is how fast the append-only file grows. A rewrite makes the file smaller; it does not count.
type pace struct {
	last  shard.AppendOnlyFile
	at    time.Time // of last; zero: none
	grown []growth
}

// growth is by how much the file has grown in a time.
type growth struct {
	bytes int64
	took  time.Duration
}

// read takes the next reading.
func (p *pace) read(now time.Time, f shard.AppendOnlyFile) {
	if !p.at.IsZero() && f.Base == p.last.Base && f.Size >= p.last.Size {
		p.grown = keep(p.grown, growth{f.Size - p.last.Size, now.Sub(p.at)})
	}
	p.last, p.at = f, now
}

// broken forgets the last reading: the server has ended, and its next file is not compared with it.
func (p *pace) broken() { p.at = time.Time{} }

// perSecond returns the bytes a second; -1: there are too few readings to know it.
func (p *pace) perSecond() float64 {
	if len(p.grown) < leastReadings {
		return -1
	}
	var all growth
	for _, g := range p.grown {
		all.bytes += g.bytes
		all.took += g.took
	}
	return float64(all.bytes) / max(all.took, 1).Seconds()
}

// keep appends to the last that are remembered.
func keep[T any](list []T, one T) []T {
	if len(list) >= remembered {
		list = slices.Delete(list, 0, 1+len(list)-remembered)
	}
	return append(list, one)
}
