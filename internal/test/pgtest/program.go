package pgtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// program finds one of PostgreSQL's programs: in $PG_BIN, in PATH, or where packages
// put them.
func program(name string) (string, error) {
	if dir := os.Getenv("PG_BIN"); dir != "" {
		return exec.LookPath(filepath.Join(dir, name))
	}
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	var found []string
	for _, dirs := range []string{"/usr/lib/postgresql/*/bin/", "/usr/pgsql-*/bin/", "/opt/homebrew/opt/postgresql@*/bin/", "/usr/local/opt/postgresql@*/bin/"} {
		more, _ := filepath.Glob(dirs + name) // the patterns are right
		found = append(found, more...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no %s found; install PostgreSQL 12 or newer with: apt-get install -y postgresql (Debian, Ubuntu) "+
			"or brew install postgresql@17 (macOS); or set PG_BIN to the directory of its programs", name)
	}
	slices.Sort(found)
	return found[len(found)-1], nil
}

// account is the user that runs PostgreSQL, which refuses root.
type account struct{ uid, gid uint32 } // 0: the user who runs the test

func findAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &account{uint32(uid), uint32(gid)}, nil
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and neither of the users that it could run as exists")
}

// own gives a directory or a file to the account.
func (a *account) own(dir string) error {
	if a.uid == 0 {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// ownAll gives a data directory and all in it to the account, and to no other: PostgreSQL checks that.
func (a *account) ownAll(data string) error {
	if err := os.Chmod(data, 0o700); err != nil || a.uid == 0 {
		return err
	}
	return filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return a.own(path)
	})
}
