package child

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/loop"
)

// The files of a directory beside those that the server names itself.
const (
	lockFile       = "lock"       // held by this process; has its pid
	serverLockFile = "redis.lock" // held by the server
	socketFile     = "redis.sock"
	configFile     = "redis.conf"
	passwordFile   = "password"
	writerFile     = "written-by" // the version of the last server
	savedFile      = "backup.rdb" // what the server writes for a backup, for a moment
	restoringFile  = "restoring"  // there until a restore has finished
)

// longestSocket is the longest path of a socket that every system takes.
const longestSocket = 103

// prepare makes the directory, or sees that it can be used: it is this user's, on a disk of this machine, and has nothing
// else in it.
func prepare(dir string) error {
	if n := len(filepath.Join(dir, socketFile)); n > longestSocket {
		return fmt.Errorf("store: %s is too long a path for a socket, by %d bytes: use a shorter one", dir, n-longestSocket)
	}
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		_ = syncDir(filepath.Dir(dir)) // it may be written and not read; most file systems sync it anyway
	case errors.Is(err, fs.ErrExist):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: %w; make it for the user that runs Caddy: install -d -m 700 -o %s %s", err, userName(), dir)
	default:
		return fmt.Errorf("store: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("store: %w", err)
	case !info.IsDir():
		return fmt.Errorf("store: %s is a file: name a directory", dir)
	case !isOwner(info):
		return fmt.Errorf("store: %s belongs to another user than %s, who runs Caddy: give it to that user, with all in it, or run Caddy as its owner", dir, userName())
	}
	if err := hasNothingElse(dir); err != nil {
		return err
	}
	if network := networkFS(dir); network != "" {
		return fmt.Errorf("store: %s is on a network file system (%s), where a lock or a sync may mean nothing: use a disk of this machine", dir, network)
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("store: other users may open it, and that cannot be changed: %w", err)
		}
	}
	return nil
}

// hasNothingElse refuses a directory with files and without the mark of a store: it would be closed to those
// who use it.
func hasNothingElse(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); err == nil || len(files) == 0 {
		return nil
	}
	return fmt.Errorf("store: %s has other files, such as %s: name a directory that is empty, or does not exist yet", dir, files[0].Name())
}

// claim locks the directory for this process.
func claim(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if !lockOwn(f) {
		pid, _ := os.ReadFile(f.Name())
		f.Close()
		return nil, fmt.Errorf("store: %s is used by process %s: one process has a store; end that one, name another directory, or let both use a `redis`", dir, strings.TrimSpace(string(pid)))
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store: %w", err)
	}
	return f, nil
}

// lockOwn locks a file. It waits for an earlier configuration of this process, which is ending its server.
func lockOwn(f *os.File) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*endsWithin)
	defer cancel()
	for tryLock(f) != nil {
		pid, _ := os.ReadFile(f.Name())
		if strings.TrimSpace(string(pid)) != strconv.Itoa(os.Getpid()) || !loop.Rest(ctx, askEvery, nil) {
			return false
		}
	}
	return true
}

// password returns the directory's password, and makes it at the first start.
func password(dir string) (string, error) {
	name := filepath.Join(dir, passwordFile)
	text, err := os.ReadFile(name)
	if word := strings.TrimSpace(string(text)); err == nil && word != "" {
		return word, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("store: %w", err)
	}
	word := rand.Text()
	return word, replace(name, word+"\n")
}

// replace writes a file as a whole: after a crash it has the old text or the new one.
func replace(name, text string) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
