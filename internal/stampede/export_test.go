package stampede

import "time"

// LatencyOf is what the histogram makes of these durations.
func LatencyOf(all []time.Duration) Latency {
	var h histogram
	for _, d := range all {
		h.add(d)
	}
	return h.latency()
}
