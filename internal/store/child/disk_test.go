package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// smallDisk is a redis-server whose files have the size of the file limit at most, in blocks of 512 bytes: a longer
// write fails as on a full disk. It counts for root too.
func smallDisk(t *testing.T, blocks string) (program string, grow func(blocks string)) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "redis-server")
	limit := filepath.Join(dir, "limit")
	grow = func(blocks string) {
		if err := os.WriteFile(limit, []byte(blocks), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grow(blocks)
	script := fmt.Sprintf("#!/bin/sh\ntrap '' XFSZ\nulimit -f \"$(cat '%s')\"\nexec redis-server \"$@\"\n", limit)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, grow
}

// On a full disk nothing is acknowledged that is not kept, the log says what to do, and the server goes on by itself
// when there is room.
func TestFullDisk(t *testing.T) {
	program, grow := smallDisk(t, "64")
	l := new(log)
	s, err := Open(Options{Dir: storeDir(t), Program: program, Log: logTo(l), LookEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := reach(s, edgeUser)
	o.Timeout = 5 * time.Second // a call without an answer ends the test's sales
	store := stocktest.OpenStore(t, o)
	stocktest.Load(t, store, stocktest.OpenSale("s", 10))
	acknowledged := 0
	for {
		if _, err = store.Adjust(stocktest.Soon(t), "s", fmt.Sprintf("j%d", acknowledged), "a", 1, "me"); err != nil {
			break
		}
		if acknowledged++; acknowledged > 1000 {
			t.Fatal("the disk is never full")
		}
	}
	stocktest.Eventually(t, "the log says what to do", func() bool { return l.has("make room on the disk, and it goes on by itself") })
	if now := s.Status(); !strings.Contains(now.Why, "make room on the disk") {
		t.Errorf("its status says %q", now.Why)
	}
	grow("unlimited")
	stocktest.Eventually(t, "the server goes on", func() bool {
		_, err := store.Adjust(stocktest.Soon(t), "s", fmt.Sprintf("j%d", acknowledged), "a", 1, "me") // the one without an answer
		return err == nil
	})
	if units := stocktest.CellA(t, store).Available; units != int64(10+acknowledged+1) {
		t.Errorf("%d units, want 10 and %d that were acknowledged and the last", units, acknowledged)
	}
	stocktest.Eventually(t, "it is up", func() bool { return s.Status().Up })
}

// sold is a store with 13 units that was stopped, and the file to which its server appends.
func sold(t *testing.T) (dir, file string) {
	t.Helper()
	dir = storeDir(t)
	s, _ := open(t, dir)
	store := stock(t, s)
	stocktest.Load(t, store, stocktest.OpenSale("s", 10))
	for i := range 3 {
		if _, err := store.Adjust(stocktest.Soon(t), "s", fmt.Sprintf("j%d", i), "a", 1, "me"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	last, ok := newest(dir)
	if !ok {
		t.Fatal("there is no file")
	}
	return dir, filepath.Join(dir, appendDir, last.name)
}

func units(t *testing.T, s *Server) int64 {
	t.Helper()
	stocktest.Eventually(t, "the server answers", func() bool { return answers(t, s) })
	return stocktest.CellA(t, stock(t, s)).Available
}

// A file that lost what was acknowledged is not sold from, until it is back.
func TestLostTail(t *testing.T) {
	dir, file := sold(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(len(text)-3)); err != nil {
		t.Fatal(err)
	}
	s, l := open(t, dir)
	if now := s.Status(); !l.has("has lost its last 3 bytes") || now.Why == "" || now.PID != 0 {
		t.Errorf("%+v, the log says:\n%s", now, l.text.String())
	}
	if info, err := os.Stat(file); err != nil || info.Size() != int64(len(text)-3) {
		t.Errorf("the file was changed: %v, %v", info, err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := units(t, s); n != 13 {
		t.Errorf("%d units once the file is back, want 13", n)
	}
	s.Close()

	// without the note an operator has accepted the loss, and hears of what is cut off
	if err := os.Truncate(file, int64(len(text)-3)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, syncedFile)); err != nil {
		t.Fatal(err)
	}
	s, l = open(t, dir)
	if n := units(t, s); n != 12 {
		t.Errorf("%d units without the last one, want 12", n)
	}
	if cut := s.Status().Cut; cut < 3 || !l.has("was no whole record") {
		t.Errorf("%d bytes were cut off, and the log says:\n%s", cut, l.text.String())
	}
	s.Close()
	if s, l = open(t, dir); l.has("every sale that is open is paused first") {
		t.Errorf("the loss was accepted once, and the log says:\n%s", l.text.String())
	}
	s.Close()
}

// Where an operator accepts a loss, no edge reaches the server before the sales are paused, which is tried until it works, also
// after a crash in the middle of it. They are paused no second time.
func TestAcceptedLoss(t *testing.T) {
	dir, file := sold(t)
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	var times []time.Time
	var l *log
	asked, answer := make(chan struct{}), make(chan error)
	start := func() *Server {
		l = new(log)
		s, err := Open(Options{Dir: dir, Log: logTo(l), Accepted: func(ctx context.Context, _ shard.Options, at time.Time) error {
			times = append(times, at)
			select {
			case asked <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			return <-answer
		}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start() // not sold from: Open does not wait
	if err := os.Remove(filepath.Join(dir, syncedFile)); err != nil {
		t.Fatal(err)
	}
	<-asked
	o := shard.Options{Timeout: time.Minute}
	s.Connect(&o)
	if _, err := o.Dialer(t.Context(), "", ""); !errors.Is(err, errPausing) {
		t.Errorf("an edge is let in: %v", err)
	}
	go func() { answer <- errors.New("not now") }()
	<-asked
	if !l.has("its sales cannot be paused") {
		t.Errorf("the log says:\n%s", l.text.String())
	}
	go func() { answer <- errors.New("the process ends here") }()
	s.Close()

	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		<-asked
		answer <- nil
	}()
	s = start() // Open waits until it is done
	<-accepted
	s.Connect(&o)
	stocktest.OpenStore(t, o)
	s.Close()
	s = start()
	s.Close()
	if times = slices.Compact(times); len(times) != 1 || l.has("notes were deleted") {
		t.Errorf("it was accepted at %v; the log says:\n%s", times, l.text.String())
	}
}

// Notes that are deleted under a store from which this process has sold are no decision of an operator who has stopped it.
func TestNotesDeletedMeanwhile(t *testing.T) {
	l := new(log)
	dir := storeDir(t)
	s, err := Open(Options{Dir: dir, Log: logTo(l), LookEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	units := stock(t, s)
	stocktest.Load(t, units, stocktest.OpenSale("s", 10))
	note := filepath.Join(dir, syncedFile)
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(s.Status().PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the log says what to do", func() bool { return l.has("was deleted while Caddy sold from the store") })
	if err := os.WriteFile(note, text, 0o600); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "it goes on once they are back", func() bool { return answers(t, s) })
}

// A store whose files are gone does not begin as an empty one.
func TestEmptiedStore(t *testing.T) {
	dir, _ := sold(t)
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(filepath.Join(dir, appendDir), away); err != nil {
		t.Fatal(err)
	}
	s, l := open(t, dir)
	defer s.Close()
	if !l.has(".incr.aof is gone") || s.Status().PID != 0 {
		t.Errorf("the log says:\n%s", l.text.String())
	}
	if err := os.Rename(away, filepath.Join(dir, appendDir)); err != nil {
		t.Fatal(err)
	}
	if n := units(t, s); n != 13 {
		t.Errorf("%d units once they are back, want 13", n)
	}
}

// A write that a crash has stopped had no answer: the server starts without it, and the log has its size.
func TestStoppedWrite(t *testing.T) {
	dir, file := sold(t)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const begun = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nhal"
	if _, err := f.WriteString(begun); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s, l := open(t, dir)
	defer s.Close()
	if n := units(t, s); n != 13 {
		t.Errorf("%d units, want 13", n)
	}
	if cut := s.Status().Cut; cut != int64(len(begun)) || !l.has(fmt.Sprintf(`"bytes":%d`, len(begun))) {
		t.Errorf("%d bytes were cut off; the log says:\n%s", cut, l.text.String())
	}
}

// Of a transaction that a crash has stopped nothing is applied, at no later start either, wherever it was stopped.
func TestStoppedTransaction(t *testing.T) {
	const command = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	for _, begun := range []string{"*1\r\n$5\r\nMULTI\r\n" + command, "*1\r\n$5\r\nMULTI\r\n" + command + command[:20]} {
		dir, file := sold(t)
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(begun); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for start := range 2 {
			s, _ := open(t, dir)
			stocktest.Eventually(t, "the server answers", func() bool { return answers(t, s) })
			store := stock(t, s)
			if start == 0 {
				if cut := s.Status().Cut; cut != int64(len(begun)) {
					t.Errorf("%d bytes were cut off, want %d", cut, len(begun))
				}
				if _, err := store.Adjust(stocktest.Soon(t), "s", "later", "a", 1, "me"); err != nil {
					t.Fatal(err)
				}
			}
			if n := stocktest.CellA(t, store).Available; n != 14 {
				t.Errorf("start %d: %d units, want 14", start, n)
			}
			if n, err := shard.Redis(store.Shard()).Exists(stocktest.Soon(t), "k").Result(); n != 0 || err != nil {
				t.Errorf("start %d: half of a transaction was applied, %v", start, err)
			}
			s.Close()
		}
	}
}

// A rewrite replaces the file that was noted; what it wrote is kept as any.
func TestRewriteIsNoLoss(t *testing.T) {
	dir, file := sold(t)
	note, err := os.ReadFile(filepath.Join(dir, syncedFile))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, dir)
	set := func(name, value string) {
		t.Helper()
		if err := shard.Redis(s.keeper).ConfigSet(stocktest.Soon(t), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("auto-aof-rewrite-min-size", "1")
	set("auto-aof-rewrite-percentage", "1")
	store := stock(t, s)
	for i := 0; ; i++ { // it grows until the server rewrites it
		if _, err := store.Adjust(stocktest.Soon(t), "s", fmt.Sprintf("k%d", i), "a", 1, "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); os.IsNotExist(err) {
			break
		}
	}
	want := units(t, s)
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, syncedFile), note, 0o600); err != nil { // the last one before a crash
		t.Fatal(err)
	}
	s, _ = open(t, dir)
	defer s.Close()
	if n := units(t, s); n != want {
		t.Errorf("%d units, want %d", n, want)
	}
}

// Of two notes one may be spoilt.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	for turn := range 3 {
		if _, err := writeNote(dir, turn, increment{"a.aof", 1, int64(100 + turn)}); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, syncedFile)
	text, err := os.ReadFile(name)
	if err != nil || len(text) != 2*noteSize {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if notes, err := readNotes(dir); err != nil || fmt.Sprint(notes) != "[{a.aof 1 102} {a.aof 1 101}]" {
		t.Errorf("%v, %v", notes, err)
	}
	copy(text[20:], "9")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if notes, err := readNotes(dir); err != nil || fmt.Sprint(notes) != "[{a.aof 1 101}]" {
		t.Errorf("%v, %v", notes, err)
	}
	for _, c := range []struct {
		files []increment
		want  string
	}{
		{nil, "is gone"},
		{[]increment{{"a.aof", 1, 102}}, ""},
		{[]increment{{"a.aof", 1, 95}}, "has lost its last 5 bytes"},
		{[]increment{{"a.aof", 1, 95}, {"b.aof", 2, 10}}, "has lost its last 5 bytes"},
		{[]increment{{"a.aof", 1, -1}}, "is gone"},
		{[]increment{{"b.aof", 2, 10}}, ""},
		{[]increment{{"0.aof", 0, 1000}}, "is gone"},
	} {
		if got := lacks(c.files, increment{"a.aof", 1, 100}); !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q, want …%q", c.files, got, c.want)
		}
	}
}

// A pace needs a minute of readings, and a rewrite is none.
func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(0, 0)
	read := func(size, base int64) float64 {
		now = now.Add(5 * time.Second)
		p.read(now, shard.AppendOnlyFile{Size: size, Base: base})
		return p.perSecond()
	}
	size := int64(1000)
	for range leastReadings {
		if got := read(size, 100); got != -1 {
			t.Fatalf("too early: %v", got)
		}
		size += 500
	}
	if got := read(size, 100); got != 100 {
		t.Errorf("%v bytes a second, want 100", got)
	}
	for _, after := range []int64{200, 1e6} { // smaller than before, and larger again
		if got := read(after, after); got != 100 {
			t.Errorf("after a rewrite to %d bytes %v, want 100", after, got)
		}
	}
	p.broken()
	if got := read(1e9, 200); got != 100 {
		t.Errorf("after a restart %v, want 100", got)
	}
	for range remembered {
		read(1e9, 200)
	}
	if got := p.perSecond(); got != 0 {
		t.Errorf("ten minutes later %v, want 0", got)
	}
	for _, c := range []struct {
		pace float64
		free int64
		want string
	}{{-1, 100, "0s false"}, {0, 100, "0s false"}, {2, 7200, "1h0m0s true"}, {1e-9, 1 << 60, "876000h0m0s true"}} {
		lasts, known := (&Status{Pace: c.pace, Free: c.free}).Lasts()
		if got := fmt.Sprint(lasts, known); got != c.want {
			t.Errorf("%v bytes at %v a second last %s, want %s", c.free, c.pace, got, c.want)
		}
	}
}

// Server and disk are looked at from time to time.
func TestLook(t *testing.T) {
	dir := storeDir(t)
	s, err := Open(Options{Dir: dir, Log: logTo(new(log)), LookEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stocktest.Load(t, stock(t, s), stocktest.OpenSale("s", 10))
	stocktest.Eventually(t, "all of it is known", func() bool {
		now := s.Status()
		return now.Up && now.Files > 1000 && now.Free > 0 && now.Pace >= 0 && now.Syncs.Count > 0 && now.Syncs.Late >= now.Syncs.Median && now.Syncs.Median > 0
	})
	if sum := s.Status().Syncs.Sum; sum <= 0 {
		t.Errorf("they took %v", sum)
	}
}
