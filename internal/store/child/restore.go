package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The files in [appendDir]: the base, and the list of the files. See
// https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/.
const (
	appendBase = "appendonly.aof.1.base.rdb"
	appendList = "appendonly.aof.manifest"
)

// Restoring is a directory that is filled from a backup. Its server runs.
type Restoring struct {
	*Server
	Backup
	made bool // the directory was not there
}

// Restore makes a store from a backup, in a directory that is empty or does not exist, and starts its server. Call Finish once
// all is as it should be, or Discard: until then no other server starts there. An error leaves the directory as it was.
func Restore(ctx context.Context, o Options, from io.Reader) (*Restoring, error) {
	p, err := find(o.Program)
	if err != nil {
		return nil, err
	}
	if err := isVacant(o.Dir); err != nil {
		return nil, err
	}
	_, err = os.Stat(o.Dir)
	r := &Restoring{made: errors.Is(err, fs.ErrNotExist)}
	if err := prepare(o.Dir); err != nil {
		return nil, err
	}
	lock, err := claim(o.Dir)
	if err != nil {
		return nil, err
	}
	if r.Backup, err = fill(o.Dir, p, from); err != nil {
		empty(o.Dir, r.made)
		lock.Close()
		return nil, err
	}
	if r.Server, err = start(o, p, lock); err != nil {
		empty(o.Dir, r.made)
		return nil, err
	}
	if err := r.Await(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s cannot read the backup: %w", p, err), r.Discard())
	}
	return r, nil
}

// isVacant refuses a directory that has something in it.
func isVacant(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		return nil // prepare says what is wrong with it
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0o600)
	if err != nil {
		return hasNothingElse(dir)
	}
	defer f.Close()
	if tryLock(f) != nil {
		pid, _ := os.ReadFile(f.Name())
		return fmt.Errorf("store: %s is used by process %s: restore into a directory that is empty, or does not exist yet", dir, strings.TrimSpace(string(pid)))
	}
	return fmt.Errorf("store: %s has a store already, and a restore overwrites none: name a directory that is empty, or does not exist yet. To put the backup in its place, "+
		"end the Caddy that uses it, move the directory away, and restore then: mv %[1]s %[1]s.before", dir)
}

// fill lays out the files with which a server starts from a backup.
func fill(dir string, p program, from io.Reader) (b Backup, err error) {
	if err := replace(filepath.Join(dir, restoringFile), "see `caddy stockgate store restore`\n"); err != nil {
		return b, err
	}
	if err := os.Mkdir(filepath.Join(dir, appendDir), 0o700); err != nil {
		return b, fmt.Errorf("store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, appendDir, appendBase), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return b, fmt.Errorf("store: %w", err)
	}
	b, err = copyBackup(f, from, p)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return b, err
	}
	if err := beginNotes(dir); err != nil {
		return b, fmt.Errorf("store: %w", err)
	}
	return b, replace(filepath.Join(dir, appendDir, appendList), "file "+appendBase+" seq 1 type b\n")
}

// Finish ends the server. The directory is a store from then on.
func (r *Restoring) Finish() error {
	for _, dir := range []string{r.dir, filepath.Join(r.dir, appendDir), filepath.Dir(r.dir)} {
		if err := syncDir(dir); err != nil {
			return errors.Join(fmt.Errorf("store: %w", err), r.Discard())
		}
	}
	r.end()
	if err := os.Remove(filepath.Join(r.dir, restoringFile)); err != nil {
		return errors.Join(fmt.Errorf("store: %w", err), r.Discard())
	}
	return errors.Join(syncDir(r.dir), r.Close())
}

// Discard ends the server and leaves the directory as it was.
func (r *Restoring) Discard() error {
	r.end()
	empty(r.dir, r.made)
	return r.Close()
}

// empty removes all that a restore has put into a directory, and the directory if it made it. It is claimed.
func empty(dir string, all bool) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		_ = os.RemoveAll(filepath.Join(dir, f.Name()))
	}
	if all {
		_ = os.Remove(dir)
	}
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// isWhole refuses a directory in which a restore has not finished: its sales would go on as they were.
func isWhole(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, restoringFile)); err == nil {
		return fmt.Errorf("store: a restore into %s has not finished: delete the directory, and run `caddy stockgate store restore` again", dir)
	}
	return nil
}
