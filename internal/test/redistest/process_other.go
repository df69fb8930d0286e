//go:build unix && !linux

package redistest

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// awaitStopped returns when ps reports the process as stopped, or it ended.
func (p *process) awaitStopped() error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.pid())).Output()
		if err != nil {
			return fmt.Errorf("ask ps for the state of redis-server: %w", err)
		}
		if strings.HasPrefix(strings.TrimSpace(string(state)), "T") {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("redis-server has ended: %v", p.err)
		case <-tick.C:
		}
	}
}
