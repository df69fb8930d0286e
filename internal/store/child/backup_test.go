package child

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// backupOf is a backup of a server.
func backupOf(t *testing.T, s *Server) []byte {
	t.Helper()
	saved, err := s.Backup(stocktest.Soon(t), func(Stage) {})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	text, err := io.ReadAll(saved)
	if err != nil || int64(len(text)) != saved.Size || saved.Time.IsZero() || saved.Writer != s.program.String() {
		t.Fatalf("%d bytes, %+v, %v", len(text), saved.Backup, err)
	}
	return text
}

// leavesNothing reports what a backup has left in the server's directory.
func leavesNothing(t *testing.T, s *Server) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*.rdb")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// set sets an option of the running server.
func set(t *testing.T, s *Server, name, value string) {
	t.Helper()
	if err := shard.Redis(s.keeper).ConfigSet(stocktest.Soon(t), name, value).Err(); err != nil {
		t.Error(err)
	}
}

// A backup becomes a store in another directory, which has the same.
func TestRestore(t *testing.T) {
	s, _ := open(t, storeDir(t))
	defer s.Close()
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	text := backupOf(t, s)
	leavesNothing(t, s)
	dir := storeDir(t)
	r, err := Restore(stocktest.Soon(t), Options{Dir: dir, Log: zap.NewNop()}, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it starts from what it has written itself
		again, _ := open(t, dir)
		if units := stocktest.CellA(t, stock(t, again)).Available; units != 10 {
			t.Errorf("%d units, want 10", units)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What cannot be restored is said, and leaves nothing.
func TestRestoreIsRefused(t *testing.T) {
	used := storeDir(t)
	s, _ := open(t, used)
	good := backupOf(t, s)
	damaged := slices.Clone(good)
	damaged[len(damaged)-12] ^= 1
	newer := bytes.Replace(good, []byte(s.program.version), []byte(strings.Repeat("9", strings.Index(s.program.version, "."))+s.program.version[strings.Index(s.program.version, "."):]), 1)
	unknown := slices.Clone(good)
	copy(unknown[5:], "0099")
	binary.LittleEndian.PutUint64(unknown[len(unknown)-8:], sumOf(unknown[:len(unknown)-8]))
	for want, text := range map[string][]byte{
		"cut off or damaged":     good[:len(good)-1],
		"its checksum is wrong":  damaged,
		"it is no backup":        []byte("order,units\nA,1\n"),
		"it is no backup of":     nil,
		"cannot read it":         newer,
		"cannot read the backup": unknown,
	} {
		for _, there := range []bool{false, true} {
			dir := storeDir(t)
			if there {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Restore(stocktest.Soon(t), Options{Dir: dir, Log: zap.NewNop()}, bytes.NewReader(text))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want …%s…", err, want)
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || (err == nil) != there {
				t.Errorf("%s: it leaves %v, %v", want, left, err)
			}
		}
	}

	refuses := func(dir, want string) {
		t.Helper()
		_, err := Restore(stocktest.Soon(t), Options{Dir: dir, Log: zap.NewNop()}, bytes.NewReader(good))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
	refuses(used, "is used by process "+strconv.Itoa(os.Getpid()))
	if !answers(t, s) {
		t.Error("the server that uses it has ended")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refuses(used, "has a store already")
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(other, "has other files, such as photo.jpg")
}

// sumOf is Redis's checksum.
func sumOf(text []byte) uint64 {
	sum := &checksum{}
	_, _ = sum.Write(append(slices.Clone(text), make([]byte, 9)...))
	return sum.sum
}

// No server starts where a restore has not finished.
func TestRestoreThatBrokeOff(t *testing.T) {
	s, _ := open(t, storeDir(t))
	text := backupOf(t, s)
	s.Close()
	dir := storeDir(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := fill(dir, s.program, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Log: zap.NewNop()}); err == nil || !strings.Contains(err.Error(), "has not finished: delete the directory") {
		t.Errorf("it opens: %v", err)
	}
}

// A backup waits until the server has rewritten its append-only file, and says so.
func TestBackupWaitsForRewrite(t *testing.T) {
	s, _ := open(t, storeDir(t))
	defer s.Close()
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	set(t, s, "rdb-key-save-delay", "60000000") // the rewrite ends with its process only
	set(t, s, "auto-aof-rewrite-min-size", "1")
	set(t, s, "auto-aof-rewrite-percentage", "1")
	stocktest.Eventually(t, "it rewrites", func() bool {
		state, err := s.keeper.SaveState(stocktest.Soon(t))
		return err == nil && state.Rewriting
	})
	var stages []Stage
	saved, err := s.Backup(stocktest.Soon(t), func(stage Stage) {
		if stages = append(stages, stage); stage == StageRewrite {
			set(t, s, "auto-aof-rewrite-percentage", "0")
			set(t, s, "rdb-key-save-delay", "0")
			killChild(t, s)
		}
	})
	if err != nil || !slices.Equal(stages, []Stage{StageRewrite, StageSave}) {
		t.Fatalf("%v, after %q", err, stages)
	}
	saved.Close()
}

// killChild kills the process that the server has started.
func killChild(t *testing.T, s *Server) {
	pid := s.Status().PID
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	child, e := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, e); err != nil {
		t.Error(err)
		return
	}
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Error(err)
	}
}

// A backup that fails says why, and the next one succeeds.
func TestBackupFails(t *testing.T) {
	s, _ := open(t, storeDir(t))
	defer s.Close()
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	fails := func(want string, is error, ctx context.Context, stage func()) {
		t.Helper()
		_, err := s.Backup(ctx, func(got Stage) {
			if got == StageSave {
				stage()
			}
		})
		if !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
	if err := s.hasRoom(1 << 60); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "make room there") {
		t.Errorf("a disk that is too small: %v", err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, savedFile), 0o700); err != nil {
		t.Fatal(err)
	}
	fails("could not write the backup", shard.ErrRefused, stocktest.Soon(t), func() {})

	set(t, s, "rdb-key-save-delay", "60000000")
	first := s.Status().PID
	fails("ask again", shard.ErrUnavailable, stocktest.Soon(t), func() {
		if _, err := s.Backup(stocktest.Soon(t), func(Stage) {}); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "another backup") {
			t.Errorf("two at the same time: %v", err)
		}
		if err := unix.Kill(first, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	stocktest.Eventually(t, "another server answers", func() bool {
		now := s.Status().PID
		return now != 0 && now != first && answers(t, s)
	})
	leavesNothing(t, s)

	set(t, s, "rdb-key-save-delay", "60000000")
	ctx, cancel := context.WithCancel(stocktest.Soon(t))
	fails("not written the backup in time", shard.ErrUnavailable, ctx, cancel)
	killChild(t, s)
	set(t, s, "rdb-key-save-delay", "0")
	backupOf(t, s)
	leavesNothing(t, s)
}
