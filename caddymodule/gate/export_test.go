package gate

import "time"

// SetAfter replaces the clock by which the gate asks the shop later. It must come before the first attempt.
func (g *Gate) SetAfter(after func(time.Duration, func()) *time.Timer) {
	g.taker.Inquirer.After = after
}
