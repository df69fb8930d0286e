package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// log collects what a server logs.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// storeDir is a directory that does not exist yet, with a short path: sockets need that.
func storeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "a store") // Redis's configuration must quote it
}

func open(t *testing.T, dir string) (*Server, *log) {
	t.Helper()
	l := new(log)
	s, err := Open(Options{Dir: dir, Log: logTo(l)})
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

func logTo(l *log) *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(l), zap.DebugLevel))
}

// reach leads a user to the server. It has time, however slow the machine is.
func reach(s *Server, user string) shard.Options {
	o := shard.Options{Timeout: time.Minute}
	s.connect(&o, user)
	return o
}

// stock is what an edge does with the server.
func stock(t *testing.T, s *Server) *reservation.Store {
	t.Helper()
	return stocktest.OpenStore(t, reach(s, edgeUser))
}

func client(t *testing.T, o shard.Options) *shard.Client {
	t.Helper()
	c, err := shard.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func answers(t *testing.T, s *Server) bool { return s.keeper.Ping(stocktest.Soon(t)) == nil }

// kill kills the server's process, and returns when another one answers.
func kill(t *testing.T, s *Server) {
	t.Helper()
	first := s.Status().PID
	if first == 0 {
		t.Fatal("no server runs")
	}
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "another server answers", func() bool {
		now := s.Status().PID
		return now != 0 && now != first && answers(t, s)
	})
}

// All that was acknowledged is there after kill -9 of the server, and after the next start.
func TestKeeps(t *testing.T) {
	dir := storeDir(t)
	s, l := open(t, dir)
	store := stock(t, s)
	stocktest.Load(t, store, stocktest.OpenSale("s", 10))
	for i := range 5 {
		if _, err := store.Adjust(stocktest.Soon(t), "s", fmt.Sprintf("j%d", i), "a", 1, "me"); err != nil {
			t.Fatal(err)
		}
		kill(t, s)
	}
	if n := s.Status().Restarts; n != 5 || !l.has("has ended: attempts are unavailable") {
		t.Errorf("%d restarts, logged: %v", n, l.has("has ended"))
	}
	if units := stocktest.CellA(t, store).Available; units != 15 {
		t.Errorf("%d units after five kills, want 15", units)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, dir)
	defer s.Close()
	if units := stocktest.CellA(t, stock(t, s)).Available; units != 15 {
		t.Errorf("%d units after the next start, want 15", units)
	}
}

// Only this user reaches the server, by its password, and may change nothing of it.
func TestClosedToOthers(t *testing.T) {
	dir := storeDir(t)
	s, _ := open(t, dir)
	defer s.Close()
	for _, c := range []struct{ user, password string }{{"", ""}, {"", s.password}, {edgeUser, "guess"}} {
		o := reach(s, c.user)
		o.Password = c.password
		if err := client(t, o).Ping(stocktest.Soon(t)); err == nil {
			t.Errorf("%q may ask with password %q", c.user, c.password)
		}
	}
	c := client(t, reach(s, edgeUser))
	if err := c.Shutdown(stocktest.Soon(t)); err == nil || !answers(t, s) {
		t.Errorf("the edge may end the server: %v", err)
	}
	if err := c.SetMaxMemory(stocktest.Soon(t), 1); err == nil {
		t.Error("the edge may change the configuration")
	}
	for _, name := range []string{"", socketFile, passwordFile, configFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q is open to others: %v, %v", name, info.Mode(), err)
		}
	}
	all, err := c.Inspect(stocktest.Soon(t))
	if err != nil || !all[0].AOF || all[0].Fsync != "always" || all[0].Policy != "noeviction" || all[0].Max != DefaultMemory {
		t.Errorf("the server says %+v, %v", all, err)
	}
}

// A directory has one process: another one is told which.
func TestOneProcess(t *testing.T) {
	dir := storeDir(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := tryLock(other); err != nil {
		t.Fatal(err)
	}
	if _, err := other.WriteString("4711\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Log: zap.NewNop()}); err == nil || !strings.Contains(err.Error(), "is used by process 4711") {
		t.Errorf("a second process: %v", err)
	}
}

// A server that an earlier process has left is found and ended, and what it had is there.
func TestLeftServer(t *testing.T) {
	dir := storeDir(t)
	s, _ := open(t, dir)
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	held, err := s.lockServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command(s.program.path, filepath.Join(dir, configFile))
	left.ExtraFiles = []*os.File{held}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	defer left.Process.Kill()
	held.Close()
	ended := make(chan error, 1)
	go func() { ended <- left.Wait() }()
	c := client(t, reach(s, keeperUser))
	stocktest.Eventually(t, "the server that was left answers", func() bool { return c.Ping(stocktest.Soon(t)) == nil })

	s, l := open(t, dir)
	defer s.Close()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !l.has("an earlier process has left") {
		t.Error("the log says nothing of it")
	}
	stocktest.Eventually(t, "the new server answers", func() bool { return answers(t, s) })
	if units := stocktest.CellA(t, stock(t, s)).Available; units != 10 {
		t.Errorf("%d units, want 10", units)
	}
}

// A directory that cannot be a store is named, with what to do.
func TestDirectoryIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := "/usr/share" // of root, or, to root, given away
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		file:                           "is a file",
		used:                           "has other files, such as photo.jpg",
		foreign:                        "belongs to another user",
		"/no/such/place":               "install -d -m 700",
		"/" + strings.Repeat("d", 120): "too long a path for a socket",
	} {
		_, err := Open(Options{Dir: dir, Log: zap.NewNop()})
		if err == nil || !strings.HasPrefix(err.Error(), "store: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", dir, err, want)
		}
	}
}

// A directory that others may look into is closed to them.
func TestDirectoryIsClosed(t *testing.T) {
	dir := storeDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
}

// A configuration that was changed by hand is named, and written again.
func TestConfigChangedByHand(t *testing.T) {
	dir := storeDir(t)
	s, l := open(t, dir)
	s.Close()
	if l.has("changed by hand") {
		t.Error("a new store says that it was changed")
	}
	name := filepath.Join(dir, configFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte("appendfsync always"), []byte("appendfsync no"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s, l = open(t, dir)
	s.Close()
	if again, err := os.ReadFile(name); err != nil || !bytes.Equal(again, text) || !l.has("changed by hand") {
		t.Errorf("%v, logged %v, it has now:\n%s", err, l.has("changed by hand"), again)
	}
	if s, l = open(t, dir); l.has("changed by hand") {
		t.Error("it is named again")
	}
	s.Close()
}

// Memory changes while the server runs, and stays after a restart.
func TestMemoryChanges(t *testing.T) {
	s, _ := open(t, storeDir(t))
	defer s.Close()
	c := client(t, reach(s, edgeUser))
	most := func() int64 {
		all, err := c.Inspect(stocktest.Soon(t))
		if err != nil {
			t.Fatal(err)
		}
		return all[0].Max
	}
	if err := s.Change(64 << 20); err != nil || most() != 64<<20 {
		t.Errorf("maxmemory is %d (%v)", most(), err)
	}
	kill(t, s)
	if most() != 64<<20 {
		t.Errorf("after a restart maxmemory is %d", most())
	}
	if err := s.Change(0); err != nil || most() != DefaultMemory {
		t.Errorf("by default maxmemory is %d (%v)", most(), err)
	}
}

// A file that the server cannot read is no end of Caddy: the log says what the server said.
func TestBrokenFile(t *testing.T) {
	dir := storeDir(t)
	s, _ := open(t, dir)
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	s.Close()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], append([]byte("*9\r\n$x"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	s, l := open(t, dir)
	if !l.has("Bad file format reading the append only file") || !l.has("left on the disk") {
		t.Errorf("the log says:\n%s", l.text.String())
	}
	s.Close()
	if again, err := os.ReadFile(files[0]); err != nil || len(again) != len(text)+6 {
		t.Errorf("the file has %d bytes (%v), not %d", len(again), err, len(text)+6)
	}
}

func TestSyncTimes(t *testing.T) {
	dir := storeDir(t)
	s, _ := open(t, dir)
	defer s.Close()
	times, err := s.SyncTimes(t.Context(), 5)
	if err != nil || times.Count != 5 || times.Median <= 0 || times.Late < times.Median {
		t.Errorf("%v, %v", times, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sync-*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
