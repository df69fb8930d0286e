package redistest

import (
	"fmt"
	"log"
	"os"
)

// Program is a [T] outside "go test", for benches and other programs. It logs
// to standard error; Fatalf ends the process with status 1 after its cleanups.
type Program struct {
	failed   bool
	cleanups []func()
	exit     func(int)
}

// NewProgram returns a Program. Its owner defers Close.
func NewProgram() *Program { return &Program{exit: os.Exit} }

// Close runs the cleanups, last added first. Closing twice is fine.
func (p *Program) Close() {
	for len(p.cleanups) > 0 {
		last := len(p.cleanups) - 1
		f := p.cleanups[last]
		p.cleanups = p.cleanups[:last]
		f()
	}
}

// Helper is for tests; a program has no use for it.
func (p *Program) Helper() {}

// Logf writes one line to standard error.
func (p *Program) Logf(format string, args ...any) { log.Printf(format, args...) }

// Errorf logs and remembers that something failed.
func (p *Program) Errorf(format string, args ...any) {
	p.failed = true
	log.Printf(format, args...)
}

// Fatalf logs, cleans up and ends the process with status 1.
func (p *Program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	p.Close()
	p.exit(1)
}

// Failed reports whether Errorf or Fatalf was called.
func (p *Program) Failed() bool { return p.failed }

// Cleanup adds a function that Close calls.
func (p *Program) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

// TempDir makes a directory that Close removes.
func (p *Program) TempDir() string {
	dir, err := os.MkdirTemp("", "stockgate-")
	if err != nil {
		p.Fatalf("redistest: %v", err)
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.Logf("redistest: %v", fmt.Errorf("clean up: %w", err))
		}
	})
	return dir
}
