package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
)

// lastLines is how many lines of a server's log an error has.
const lastLines = 5

// serve runs one process until it ends, or until ctx ends it.
func (s *Server) serve(ctx context.Context) error {
	lock, err := s.lockServer(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := verify(s.dir); err != nil {
		return err
	}
	accepted, err := s.accept()
	if err != nil {
		return err
	}
	s.pausing.Store(!accepted.IsZero())
	if err := s.cutTransaction(); err != nil {
		return err
	}
	clearSaved(s.dir)
	s.mu.Lock()
	memory := s.memory
	s.mu.Unlock()
	if err := writeConfig(s.dir, s.password, memory); err != nil {
		return err
	}
	said, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := exec.CommandContext(ctx, s.program.path, filepath.Join(s.dir, configFile))
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, to, to
	cmd.ExtraFiles = []*os.File{lock} // held as long as the process lives, or one that it has started
	cmd.WaitDelay = endsWithin
	cmd.Cancel = func() error { return end(cmd.Process) }
	ownGroup(cmd)
	before, _ := newest(s.dir)
	if err := cmd.Start(); err != nil {
		to.Close()
		return fmt.Errorf("it cannot be started: %w", err)
	}
	to.Close()
	lock.Close()
	return s.attend(ctx, cmd, said, before, accepted)
}

// attend waits until the process has ended, and says why, with the last that it said. before is the file to which it
// appends, as it was when the process started. accepted is what accept has returned.
func (s *Server) attend(ctx context.Context, cmd *exec.Cmd, said io.Reader, before increment, accepted time.Time) error {
	s.runs(cmd.Process.Pid)
	defer s.runs(0)
	log := make(chan []string, 1)
	go func() { log <- s.listen(said, before) }()
	living, died := context.WithCancel(ctx)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		s.awaitAnswer(living, accepted)
	}()
	err := cmd.Wait()
	died()
	<-answers
	killGroup(cmd.Process.Pid) // a rewrite of the file that outlives it
	lines := <-log
	if ctx.Err() != nil {
		if errors.Is(err, exec.ErrWaitDelay) || cmd.ProcessState.ExitCode() < 0 {
			s.log.Error("the redis-server of the store did not end in time, and was killed: nothing that it acknowledged is lost", zap.Error(err))
		} else if last, ok := newest(s.dir); ok { // it has synced all of its file
			s.noteSynced(last)
		}
		return nil
	}
	free, _ := diskFree(s.dir)
	all := strings.Join(lines, " | ")
	return fmt.Errorf("%v, with %s left on the disk%s; it said: %s", cmd.ProcessState, humanize.IBytes(uint64(free)), advice(all), all)
}

// fullDisk is what a server says when its file cannot grow.
var fullDisk = regexp.MustCompile(`Short write while writing to the AOF|No space left on device|File too large|quota exceeded`)

// advice says what to do about the end of a server, by what it said.
func advice(said string) string {
	if fullDisk.MatchString(said) {
		return ": its file cannot grow: make room on the disk, and it goes on by itself; nothing that it acknowledged is lost"
	}
	return ""
}

func (s *Server) runs(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = pid
	s.watched.up = false
}

// awaitAnswer returns when the process answers and has its sales paused where that is due, or ctx has ended.
func (s *Server) awaitAnswer(ctx context.Context, accepted time.Time) {
	for s.keeper.Ping(ctx) != nil {
		if !loop.Rest(ctx, askEvery, nil) {
			return
		}
	}
	if !s.goOn(ctx, accepted) {
		return
	}
	s.ran = true
	if err := s.program.note(s.dir); err != nil {
		s.log.Warn("which redis-server writes the store cannot be noted: an older one will not be told from it", zap.Error(err))
	}
	s.log.Info("the redis-server of the store runs", zap.Int("pid", s.Status().PID), zap.Stringer("version", s.program))
	s.begin()
	select {
	case s.answered <- struct{}{}:
	default:
	}
}

// listen reads what the server logs, and returns the last of it. Its own warnings are logged. before is the file to
// which it appends, as it was when the server started.
func (s *Server) listen(said io.Reader, before increment) (last []string) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		line := lines.Text()
		if at, ok := cutAt(line); ok {
			s.wasCut(before, at)
		}
		if _, text, ok := strings.Cut(line, " # WARNING "); ok {
			s.log.Warn("redis-server: " + text)
		} else {
			s.log.Debug("redis-server: " + line)
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if last = append(last, line); len(last) > lastLines {
			last = last[1:]
		}
	}
	_, _ = io.Copy(io.Discard, said) // a line that is too long ends no reading
	return last
}

// lockServer takes the lock that a running server holds. It ends one that an earlier process has left.
func (s *Server) lockServer(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, serverLockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if tryLock(f) == nil {
		return f, nil
	}
	s.log.Warn("a redis-server that an earlier process has left runs in the store: it is ended, and nothing is lost")
	late, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	_ = s.keeper.Shutdown(late) // it may be ending already
	for tryLock(f) != nil {
		if !loop.Rest(late, askEvery, nil) {
			f.Close()
			return nil, fmt.Errorf("the redis-server that an earlier process has left does not end within %v: end the process that has %s open (`fuser %[2]s` says which)",
				endsWithin, filepath.Join(s.dir, serverLockFile))
		}
	}
	return f, nil
}
