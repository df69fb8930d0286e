package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Stage is what a backup waits for.
type Stage string

// The stages of a backup.
const (
	StageRewrite Stage = "the server rewrites its append-only file, and writes the backup after it"
	StageSave    Stage = "the server writes the backup"
)

// keptFree is what a backup leaves on the disk: a sale that cannot write sells nothing.
const keptFree = 64 << 20

// Saved is a copy of all that a server has: an open file without a name, at its begin. Close it.
type Saved struct {
	*os.File
	Backup
}

// Backup has the server write all that it has, as it is at one moment, and goes on selling meanwhile. All that was acknowledged before
// the call is in it. stage is told what goes on. An error wraps shard.ErrUnavailable if the same may succeed later,
// and shard.ErrRefused if there is something to do first.
func (s *Server) Backup(ctx context.Context, stage func(Stage)) (*Saved, error) {
	if !s.saving.TryLock() {
		return nil, shard.Refused("store: another backup of %s is being made: ask again when it is there", s.dir)
	}
	defer s.saving.Unlock()
	began, err := s.beginSave(ctx, stage)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(s.dir, savedFile)
	defer os.Remove(name)
	stage(StageSave)
	if err := s.awaitSave(ctx, began); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	saved, err := describe(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store: what the server has written is no backup: %w", err)
	}
	return &Saved{f, saved}, nil
}

// describe reads what a file says of itself, and goes back to its begin.
func describe(f *os.File) (Backup, error) {
	head := make([]byte, headBytes)
	n, err := f.ReadAt(head, 0)
	if n == 0 {
		return Backup{}, err
	}
	b, err := readHead(head[:n])
	if err != nil {
		return b, err
	}
	info, err := f.Stat()
	if err == nil {
		b.Size = info.Size()
	}
	return b, err
}

// beginSave returns the state of the server that has begun to write.
func (s *Server) beginSave(ctx context.Context, stage func(Stage)) (shard.SaveState, error) {
	for waits := false; ; {
		state, err := s.keeper.SaveState(ctx)
		if err != nil {
			return state, err
		}
		if state.Rewriting && !waits {
			waits = true
			s.log.Info("a backup waits until the server has rewritten its append-only file")
			stage(StageRewrite)
		}
		if !state.Rewriting && !state.Saving {
			if err := s.hasRoom(state.Memory); err != nil {
				return state, err
			}
			failed := s.keeper.Save(ctx)
			if failed == nil {
				return state, nil
			}
			if state, err = s.keeper.SaveState(ctx); err != nil || !state.Rewriting {
				return state, fmt.Errorf("%w: store: the server begins no backup: %w", shard.ErrUnavailable, failed)
			}
		}
		if !loop.Rest(ctx, askEvery, nil) {
			return state, fmt.Errorf("%w: store: the server is still busy with its append-only file, so that no backup could begin: ask again later", shard.ErrUnavailable)
		}
	}
}

// hasRoom refuses a backup that may fill the disk, which the sale needs.
func (s *Server) hasRoom(memory int64) error {
	free, err := diskFree(s.dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if free < memory+keptFree {
		return shard.Refused("store: a backup may need %s for a moment on the disk of %s, which has %s left, and the sale goes on only while there is room: make room there",
			humanize.IBytes(uint64(memory)), s.dir, humanize.IBytes(uint64(free)))
	}
	return nil
}

// awaitSave returns when the server has written its copy.
func (s *Server) awaitSave(ctx context.Context, began shard.SaveState) error {
	for {
		state, err := s.keeper.SaveState(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: store: the server has not written the backup in time: ask again later", shard.ErrUnavailable)
		case errors.Is(err, shard.ErrUnavailable), err == nil && state.Server != began.Server:
			return fmt.Errorf("%w: store: the server has ended while it wrote the backup: see Caddy's log, and ask again", shard.ErrUnavailable)
		case err != nil:
			return err
		case !state.Saving && state.Failed:
			free, _ := diskFree(s.dir)
			s.log.Error("the server could not write a backup", zap.Int64("disk_free", free))
			return shard.Refused("store: the server could not write the backup into %s, with %s left on the disk: Caddy's log at level debug has its words; make room there, and see that it may start a process with as much memory as it has",
				s.dir, humanize.IBytes(uint64(free)))
		case !state.Saving:
			return nil
		}
		loop.Rest(ctx, askEvery, nil)
	}
}

// clearSaved removes what a server that has ended left of a backup.
func clearSaved(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "temp-*.rdb")) // Redis's name for what it has not finished
	for _, name := range append(left, filepath.Join(dir, savedFile)) {
		_ = os.Remove(name)
	}
}

// Backup is what a backup says of itself.
type Backup struct {
	// Time is when it was made, to the second; zero: it does not say.
	Time time.Time
	// Writer is the server that has made it, such as redis 7.0.15; empty: it does not say.
	Writer string
	Size   int64 // bytes
}
