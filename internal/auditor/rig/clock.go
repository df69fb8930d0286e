package rig

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed shim/clock.c
var clockSource []byte

// clock is what a redis-server takes for the time: the machine's, off by what a file says.
// libfaketime cannot be used: redis-server with a jemalloc of its own ends at its start.
type clock struct{ library, file string }

// newClock compiles the library that is preloaded.
func newClock(dir string) (*clock, error) {
	c := &clock{filepath.Join(dir, "clock.so"), filepath.Join(dir, "clock")}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", c.library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the clock (scripts/need gcc installs what is missing): %w\n%s", err, out)
	}
	return c, os.WriteFile(c.file, make([]byte, 8), 0o600)
}

// env is what a process needs to have this clock.
func (c *clock) env() []string {
	return []string{"LD_PRELOAD=" + c.library, "AUDITOR_CLOCK=" + c.file}
}

// shift writes into the file, where it is: the process has it mapped.
func (c *clock) shift(by time.Duration) error {
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(by.Milliseconds())), 0)
	return err
}
