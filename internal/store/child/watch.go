package child

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
)

// looksWithin bounds how long the server may take to say how it is.
const looksWithin = 5 * time.Second

// watched is what is read of the server and its disk from time to time.
type watched struct {
	up        bool // the process answers, and has read its file
	files     int64
	rewriting bool
	pace      pace
	syncs     []time.Duration // the last ones
	synced    Syncs           // all: Count and Sum
	turn      int             // of the next note
	failed    bool            // the last note could not be written
}

// watch looks at the server until ctx ends.
func (s *Server) watch(ctx context.Context, every time.Duration) {
	loop.Every(ctx, every, s.answered, func() { s.look(ctx) })
}

// look reads how the server is, and notes what it has on the disk. All that was in the file before it is asked is on
// the disk when it answers: it syncs what it writes before it reads on.
func (s *Server) look(ctx context.Context) {
	pid := s.processID()
	last, exists := newest(s.dir)
	ctx, cancel := context.WithTimeout(ctx, looksWithin)
	defer cancel()
	file, err := s.keeper.AppendOnlyFile(ctx)
	up := err == nil && !file.Loading && pid != 0 && pid == s.processID() // not another process than had the file
	if up && exists {
		s.noteSynced(last)
	}
	files := sizeOf(s.dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched.files = files
	if !up || pid != s.pid {
		s.watched.pace.broken()
		s.watched.up, s.watched.rewriting = false, false
		return
	}
	s.watched.up, s.watched.rewriting = true, file.Rewriting
	s.watched.pace.read(time.Now(), file)
}

func (s *Server) processID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// noteSynced writes how far the file is on the disk, and remembers how long that took.
func (s *Server) noteSynced(last increment) {
	s.mu.Lock()
	turn := s.watched.turn
	s.watched.turn++
	s.mu.Unlock()
	took, err := writeNote(s.dir, turn, last)
	s.mu.Lock()
	first := err != nil && !s.watched.failed
	s.watched.failed = err != nil
	if err == nil {
		s.watched.syncs = keep(s.watched.syncs, took)
		s.watched.synced.Count++
		s.watched.synced.Sum += took
	}
	s.mu.Unlock()
	if first {
		s.log.Error("the disk of the store cannot be written: make room on it", zap.Error(err))
	}
}

// sizeOf returns the bytes of all files in a directory and below it. A file that goes away meanwhile does not count.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if entry == nil || !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
