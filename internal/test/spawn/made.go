package spawn

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Make runs a command that makes a directory, which it names in its arguments: the data of a new server, which takes a
// second of the processor. The user's cache keeps what a program of this machine has made with the same arguments, and later
// calls copy that. Processes may call it at the same time. The files belong to the user who runs the test, or to the
// command's.
func Make(cmd *exec.Cmd, dir string) error {
	kept, err := keptFor(cmd, dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(kept); err == nil {
		return os.CopyFS(dir, os.DirFS(kept))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return keep(dir, kept)
}

// keptFor is where what a command makes is kept. A program that was replaced runs again; initdb asks for the time zone.
func keptFor(cmd *exec.Cmd, dir string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil { // a user without a home
		cache = os.TempDir()
	}
	program, err := filepath.EvalSymlinks(cmd.Path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	args := strings.ReplaceAll(strings.Join(cmd.Args[1:], "\n"), dir, "")
	key := fmt.Sprintf("%s\n%d\n%v\n%s\n%s", program, info.Size(), info.ModTime().UnixNano(), os.Getenv("TZ"), args)
	return filepath.Join(cache, "stockgate-tests", fmt.Sprintf("%s-%.8x", filepath.Base(program), sha256.Sum256([]byte(key)))), nil
}

// keep copies a directory to the cache, all at once: another process sees all of it or nothing.
func keep(dir, kept string) error {
	cache := filepath.Dir(kept)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(cache, "new")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	whole := filepath.Join(temporary, "whole")
	if err := os.CopyFS(whole, os.DirFS(dir)); err != nil {
		return err
	}
	err = os.Rename(whole, kept)
	if _, e := os.Stat(kept); e == nil {
		return nil // another process may have been faster
	}
	return err
}
