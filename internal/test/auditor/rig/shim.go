package rig

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed shim/clock.c
var clockSource string

//go:embed shim/disk.c
var diskSource string

// shim is a library that is preloaded into a redis-server, and the file with the one number
// that it obeys. libfaketime cannot be used: redis-server with a jemalloc of its own ends at
// its start.
type shim struct{ library, file, variable string }

// newShim compiles the library.
func newShim(dir, name, variable, source string) (*shim, error) {
	s := &shim{filepath.Join(dir, name+".so"), filepath.Join(dir, name), variable}
	file := filepath.Join(dir, name+".c")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", s.library, file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the %s (scripts/need gcc installs what is missing): %w\n%s", name, err, out)
	}
	return s, os.WriteFile(s.file, make([]byte, 8), 0o600)
}

// set writes into the file, where it is: the process has it mapped.
func (s *shim) set(d time.Duration) error {
	f, err := os.OpenFile(s.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d.Milliseconds())), 0)
	return err
}

// shimEnv is what a process needs to have these shims.
func shimEnv(shims ...*shim) (env []string) {
	var libraries []string
	for _, s := range shims {
		if s != nil {
			libraries = append(libraries, s.library)
			env = append(env, s.variable+"="+s.file)
		}
	}
	if libraries == nil {
		return nil
	}
	return append(env, "LD_PRELOAD="+strings.Join(libraries, ":"))
}
