package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// acceptedFile has when an operator let the store go on without what its disk has lost, by deleting [syncedFile]. It
// stays until its sales are paused.
const acceptedFile = "accepted"

// errPausing is what an edge hears that comes before the sales are paused.
var errPausing = errors.New("the store goes on without what its disk has lost, and its sales are being paused first")

// acceptsAgain is the pause after Options.Accepted has failed.
const acceptsAgain = time.Second

// accept returns when an operator let the store go on without what its disk has lost; zero: nothing is lost. The first
// start of a directory notes that nothing was on the disk yet, so that a store without notes is one of which they were deleted.
func (s *Server) accept() (time.Time, error) {
	name := filepath.Join(s.dir, acceptedFile)
	if text, err := os.ReadFile(name); err == nil {
		return time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	notes, err := readNotes(s.dir)
	if err != nil || len(notes) > 0 {
		return time.Time{}, err
	}
	if _, err := os.Stat(filepath.Join(s.dir, appendDir, appendList)); errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, beginNotes(s.dir)
	} else if err != nil {
		return time.Time{}, err
	}
	if s.ran {
		return time.Time{}, fmt.Errorf("%s was deleted while Caddy sold from the store: put it back, or stop Caddy and start it again, which goes on with every sale paused",
			filepath.Join(s.dir, syncedFile))
	}
	at := time.Now().UTC().Truncate(time.Second)
	if err := replace(name, at.Format(time.RFC3339)+"\n"); err != nil {
		return time.Time{}, err
	}
	s.log.Warn("the store goes on without what its disk has lost, because its notes were deleted: every sale that is open is paused first", zap.String("deleted", syncedFile))
	return at, syncDir(s.dir)
}

// beginNotes writes both notes of a store that has nothing yet. The directory of its file is on the disk then: the server
// syncs what is in that, and not its name.
func beginNotes(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, appendDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for turn := range 2 {
		if _, err := writeNote(dir, turn, increment{name: "-"}); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

// goOn has the sales paused before an edge is let in. It returns false when ctx has ended.
func (s *Server) goOn(ctx context.Context, at time.Time) bool {
	if at.IsZero() {
		return true
	}
	o := shard.Options{Timeout: endsWithin}
	s.connect(&o, edgeUser)
	for said := false; ; said = true {
		err := s.accepted(ctx, o, at)
		if err == nil {
			err = s.forgetAccepted(ctx)
		}
		if err == nil {
			s.pausing.Store(false)
			return true
		}
		if !said && ctx.Err() == nil {
			s.log.Error("the store goes on without what its disk has lost, and its sales cannot be paused: attempts are unavailable until they are", zap.Error(err))
		}
		if !loop.Rest(ctx, acceptsAgain, nil) {
			return false
		}
	}
}

// forgetAccepted begins to note again what is on the disk, see look.
func (s *Server) forgetAccepted(ctx context.Context) error {
	last, _ := newest(s.dir)
	if err := s.keeper.Ping(ctx); err != nil {
		return err
	}
	for turn := range 2 {
		if _, err := writeNote(s.dir, turn, last); err != nil {
			return err
		}
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, acceptedFile)); err != nil {
		return err
	}
	return syncDir(s.dir)
}
