//go:build unix

package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
)

// auditedFile names, in the environment of another process, the file that it reads.
const auditedFile = "STOCKGATE_AUDITED_FILE"

// TestAuditor is another process that reads the file, as sqlite3 does; see audit. Without a file it
// does nothing.
func TestAuditor(t *testing.T) {
	file := os.Getenv(auditedFile)
	if file == "" {
		return
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM movements").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	leave(t, file)
	fmt.Printf("audited %d\n", n)
}

// leave does what sqlite3 3.40 does last: where no other process has a lock on the file, its log is
// written into it, which is done by now, and removed. Newer ones look at the index first.
func leave(t *testing.T, file string) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shared := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 1<<30 + 2, Len: 510} // see os_unix.c of SQLite
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &shared); err != nil {
		return
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// audit returns how many movements another process finds in the file.
func audit(t *testing.T, file string) (n int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), self, "-test.run=^TestAuditor$")
	other.Env = append(os.Environ(), auditedFile+"="+file)
	out, err := other.CombinedOutput()
	if err == nil {
		_, err = fmt.Sscanf(string(out), "audited %d", &n)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return n
}

// add appends this many movements to sale "s", as an edge that has its lease.
func add(t *testing.T, l ledger.Ledger, n int) {
	t.Helper()
	at, _, err := l.Acquire(ledgertest.Soon(t), "s", "A", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	b := &ledger.Batch{Epoch: 1}
	for i := range n {
		b.Movements = append(b.Movements, journal.Movement{Seq: at.Seq + int64(i) + 1, Kind: "loaded", ID: "file", Lines: []record.CellUnits{{Cell: "a", Units: 1}}})
	}
	if err := l.Append(ledgertest.Soon(t), "s", "A", b); err != nil {
		t.Fatal(err)
	}
}

// What an auditor reads is what the edges have written, and an auditor changes nothing for them:
// whatever the edges do with the file in between, as an edge that starts or the doctor does.
func TestAuditorReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	edges := []*sqlite.Ledger{open(t, file), open(t, file)}
	migrate := func(edges ...*sqlite.Ledger) {
		t.Helper()
		for _, l := range edges {
			if err := l.Migrate(ledgertest.Soon(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	migrate(edges...)
	migrate(edges...)
	for round := range 4 {
		add(t, edges[round%2], 10)
		if n, want := audit(t, file), 10*(round+1); n != want {
			t.Fatalf("round %d: the auditor finds %d movements, want %d", round, n, want)
		}
		if round == 2 {
			migrate(edges[0])
		}
	}
}

// The file is moved away, put back from a backup or loses its log while an edge has it open. The
// edge says so once, and from then on its position is that of the file; nothing is written where
// no other process finds it.
func TestFileIsMoved(t *testing.T) {
	remove := func(names ...string) func(*testing.T, string, string) {
		return func(t *testing.T, file, _ string) {
			for _, suffix := range names {
				if err := os.Remove(file + suffix); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, file, backup string)
		want   int // movements that are left
	}{
		"removed":       {remove(""), 0},
		"all removed":   {remove("", "-wal", "-shm"), 0},
		"log removed":   {remove("-wal"), 20}, // the edge still has it, and writes it into the file
		"index removed": {remove("-shm"), 20},
		"put back": {func(t *testing.T, file, backup string) {
			if err := os.Rename(backup, file); err != nil {
				t.Fatal(err)
			}
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, backup := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "backup.db")
			l := open(t, file)
			if err := l.Migrate(ledgertest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			add(t, l, 10)
			if err := l.Exec("VACUUM INTO '" + backup + "'"); err != nil {
				t.Fatal(err)
			}
			add(t, l, 10)
			test.change(t, file, backup)
			_, err := l.Position(ledgertest.Soon(t), "s")
			moved, ok := errors.AsType[*sqlite.MovedError](err)
			if !ok || !strings.Contains(moved.Error(), file) || !strings.Contains(moved.Error(), ".backup") {
				t.Fatalf("it says %v", err)
			}
			if _, _, err := l.Acquire(ledgertest.Soon(t), "s", "A", 1<<40); !errors.Is(err, error(moved)) {
				t.Errorf("the drainer does not hear of it, so it is not logged: %v", err)
			}
			for round := range 2 {
				at, err := l.Position(ledgertest.Soon(t), "s")
				if want := test.want + round*5; err != nil || at.Seq != int64(want) || audit(t, file) != want {
					t.Fatalf("round %d: the ledger is at %d (%v), an auditor finds %d, want %d", round, at.Seq, err, audit(t, file), want)
				}
				if round == 0 {
					add(t, l, 5)
				}
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && name != "put back" {
				t.Errorf("the file is %v, error %v", info.Mode(), err)
			}
		})
	}
}
