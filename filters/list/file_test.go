package list_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
)

func TestFile(t *testing.T) {
	f := open(t, file(t, "\ufeff# who may not buy\r\n\r\n  # since may\nalice\r\nalice\n buyer:bob \nphone:+1 (555) 0100\n"+
		"10.1.2.3\n10.2.0.0/16\n192.0.2.128/25\n2001:db8:1::/48\n2001:db8:ffff::1\n#10.9.9.9\n"), list.FileOptions{Normal: digits})
	if got := f.Stats().Entries; got != 8 {
		t.Errorf("%d entries, want 8: a repeated one counts once", got)
	}
	for _, c := range []struct {
		kind, value string
		want        bool
	}{
		{list.Any, "alice", true},
		{list.Any, " alice\t", true},
		{list.Any, "Alice", false},
		{list.Any, "alic", false},
		{list.Any, "bob", false},
		{list.Any, "", false},
		{list.Any, "10.1.2.3", false},
		{list.Any, strings.Repeat("alice", 200), false},
		{list.Buyer, "alice", false},
		{list.Buyer, "bob", true},
		{list.Phone, "bob", false},
		{list.Phone, "15550100", true},
		{list.Device, "15550100", false},
		{list.IP, "10.1.2.3", true},
		{list.IP, "10.1.2.4", false},
		{list.IP, "::ffff:10.1.2.3", true},
		{list.IP, "64:ff9b::10.1.2.3", true},
		{list.IP, "64:ff9b:1::10.1.2.3", true},
		{list.IP, "::ffff:0:10.1.2.3", true},
		{list.IP, "64:ff9b::10.1.2.4", false},
		{list.IP, "10.2.255.255", true},
		{list.IP, "10.3.0.0", false},
		{list.IP, "192.0.2.127", false},
		{list.IP, "192.0.2.128", true},
		{list.IP, "2001:db8:1:ffff::", true},
		{list.IP, "2001:db8:2::", false},
		{list.IP, "2001:DB8:FFFF:0::1", true},
		{list.IP, "2001:db8:ffff::1%eth0", true},
		{list.IP, "10.9.9.9", false},
	} {
		if got := holds(t, &f.List, c.kind, c.value); got != c.want {
			t.Errorf("%s %q: %v, want %v", c.kind, c.value, got, c.want)
		}
	}
	for _, c := range []struct {
		kind, value string
		want        error
	}{
		{list.IP, "alice", list.ErrAddress},
		{list.IP, "", list.ErrAddress},
		{list.IP, "10.1.2.0/24", list.ErrAddress},
		{"fax", "alice", list.ErrKind},
		{"", "alice", list.ErrKind},
	} {
		if yes, err := f.Has(context.Background(), c.kind, c.value); yes || !errors.Is(err, c.want) {
			t.Errorf("%s %q: %v, %v, want %v", c.kind, c.value, yes, err, c.want)
		}
	}
}

// An address that carries IPv4 is found as that IPv4 address, and by a prefix of IPv6 that
// contains it.
func TestIPv4InIPv6(t *testing.T) {
	f := open(t, file(t, "64:ff9b:1::10.9.0.0/112\n64:ff9b::198.51.100.7\n::ffff:0:0:0/96\n"), list.FileOptions{})
	for address, want := range map[string]bool{
		"10.9.1.1":              true,
		"64:ff9b::10.9.1.1":     true,
		"198.51.100.7":          true,
		"::ffff:198.51.100.7":   true,
		"64:ff9b::198.51.100.8": false,
		"192.0.2.1":             false,
		"::ffff:0:192.0.2.1":    true,
	} {
		if got := holds(t, &f.List, list.IP, address); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

func TestDeniesAndAdmits(t *testing.T) {
	f := open(t, file(t, "alice\nphone:1555\n10.0.0.0/8\n"), list.FileOptions{})
	for _, c := range []struct {
		kind, value    string
		denies, admits bool
	}{
		{list.Buyer, "alice", true, true},
		{list.Any, "alice", true, true},
		{list.Phone, "alice", true, false}, // any client could have typed that
		{list.Device, "alice", true, false},
		{list.Phone, "1555", true, true},
		{list.Buyer, "1555", false, false},
		{list.IP, "10.1.1.1", true, true},
		{list.IP, "11.1.1.1", false, false},
		{list.Buyer, "10.1.1.1", false, false},
	} {
		denies, err1 := f.Denies(context.Background(), time.Now(), c.kind, c.value)
		admits, err2 := f.Admits(context.Background(), time.Now(), c.kind, c.value)
		if denies != c.denies || admits != c.admits || err1 != nil || err2 != nil {
			t.Errorf("%s %q: denied %v (%v), admitted %v (%v), want %v, %v", c.kind, c.value, denies, err1, admits, err2, c.denies, c.admits)
		}
	}
	if _, err := f.Denies(context.Background(), time.Now(), list.IP, "x"); !errors.Is(err, list.ErrAddress) {
		t.Errorf("denies: %v, want %v", err, list.ErrAddress)
	}
	if _, err := f.Admits(context.Background(), time.Now(), "fax", "x"); !errors.Is(err, list.ErrKind) {
		t.Errorf("admits: %v, want %v", err, list.ErrKind)
	}
}

func TestOpenFileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"not an address":  {"alice\n# no\n\n10.0.0.256\n", ":4: \"10.0.0.256\" is not an address"},
		"unfinished line": {"alice\n10.0.0.1", ":2: the last line does not end"},
		"long line":       {"a\n" + strings.Repeat("#", 4096) + "\n", ":2: the line is longer than 4096 bytes"},
		"endless line":    {strings.Repeat("x", 1<<20), ":1: the line is longer than 4096 bytes"},
		"long entry":      {strings.Repeat("x", 513) + "\n", ":1: the entry is longer than 512 bytes"},
		"binary":          {"\x1f\x8b\x08\x00\n", ":1: the entry is not UTF-8"},
		"UTF-16":          {"\xff\xfea\x00\n\x00", ":1: the entry is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, c.content)
			if _, err := list.OpenFile(path, list.FileOptions{}); err == nil || !strings.Contains(err.Error(), path+c.want) {
				t.Errorf("error %v, want %s", err, path+c.want)
			}
		})
	}
	dir := t.TempDir()
	if _, err := list.OpenFile(dir, list.FileOptions{}); err == nil || !strings.Contains(err.Error(), dir+": not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := list.OpenFile(dir+"/none", list.FileOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir+"/none") {
		t.Errorf("no file: %v", err)
	}
}

func TestEmptyFile(t *testing.T) {
	for _, content := range []string{"", "# empty\n"} {
		f := open(t, file(t, content), list.FileOptions{})
		if n := f.Stats().Entries; n != 0 || holds(t, &f.List, list.Any, "alice") || holds(t, &f.List, list.IP, "10.0.0.1") {
			t.Errorf("%q has %d entries", content, n)
		}
	}
}

// reports collects what a file says of itself.
type reports struct {
	mu  sync.Mutex
	all []string
}

func (r *reports) add(s list.Stats, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprint(s.Entries, " ", err))
}

func (r *reports) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.all, "\n")
}

func TestFileChanges(t *testing.T) {
	path := file(t, "alice\n")
	var told reports
	f := open(t, path, list.FileOptions{Every: time.Millisecond, Report: told.add})
	f.Start()
	f.Start()
	has := func(name string) func() bool { return func() bool { return holds(t, &f.List, list.Any, name) } }
	trouble := func(text string) func() bool {
		return func() bool { err := f.Err(); return err != nil && strings.Contains(err.Error(), text) }
	}

	write(t, path, "bob\n")
	eventually(t, "another file in its place", has("bob"))
	if has("alice")() {
		t.Error("alice is still listed")
	}
	appendTo(t, path, "carol\n")
	eventually(t, "a line more", has("carol"))

	write(t, path, "dave\n10.0.0.256\n")
	eventually(t, "a broken file", trouble(path+":2: \"10.0.0.256\" is not an address"))
	write(t, path, "dave\ner")
	eventually(t, "half a line", trouble(path+":2: the last line does not end"))
	write(t, path, "")
	eventually(t, "an empty file", trouble(path+": the file has become empty"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no file", trouble("no such file"))
	if has("dave")() || !has("bob")() || !has("carol")() || f.Stats().Entries != 2 {
		t.Error("a broken file has changed the list")
	}

	write(t, path, "dave\n")
	eventually(t, "a good file", has("dave"))
	eventually(t, "no more trouble", func() bool { return f.Err() == nil })
	write(t, path, "# empty\n")
	eventually(t, "a list without entries", func() bool { return f.Stats().Entries == 0 })

	f.Stop()
	f.Stop()
	f.Start()
	want := []string{"1 <nil>", "2 <nil>", "2 " + path + ":2: \"10", "2 " + path + ":2: the last", "2 " + path + ": the file has", "2 stat " + path, "1 <nil>", "0 <nil>"}
	rest := told.String()
	for _, w := range want {
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Fatalf("told\n%s\nwant %q after what came before it", told.String(), w)
		}
		rest = after
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestStillBeingWritten: a file counts when two looks in a row find the same.
func TestStillBeingWritten(t *testing.T) {
	path := file(t, "alice\n")
	f := open(t, path, list.FileOptions{})
	f.Look()
	f.Look() // it was too young to be trusted when it was opened
	for _, name := range []string{"bob", "carol", "dave"} {
		appendTo(t, path, name+"\n")
		f.Look()
		if n := f.Stats().Entries; n != 1 {
			t.Fatalf("%d entries while the file is being written", n)
		}
	}
	f.Look()
	if n := f.Stats().Entries; n != 4 || f.Err() != nil {
		t.Errorf("%d entries, %v, after the file was written", n, f.Err())
	}
}

// TestSwappedLink changes what a link points at, as a mounted ConfigMap does.
func TestSwappedLink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "1"), "alice\n")
	write(t, filepath.Join(dir, "2"), "carol\n") // as long as the first one
	link := filepath.Join(dir, "list")
	point := func(to string) {
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	point("1")
	f := open(t, link, list.FileOptions{Every: time.Millisecond})
	f.Start()
	point("2")
	eventually(t, "the other file", func() bool { return holds(t, &f.List, list.Any, "carol") })
}

// TestSameLook rewrites a file in place so that it looks the same: as long, and as
// old, because the clock of its file system is coarse.
func TestSameLook(t *testing.T) {
	path := file(t, "alice\n")
	written := time.Now().Add(time.Hour) // young, however slow the machine is
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
	f := open(t, path, list.FileOptions{Every: time.Millisecond})
	if err := os.WriteFile(path, []byte("carol\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
	f.Start()
	eventually(t, "the new content", func() bool { return holds(t, &f.List, list.Any, "carol") })
}

func TestStopBeforeStart(t *testing.T) {
	path := file(t, "alice\n")
	f := open(t, path, list.FileOptions{Every: time.Millisecond})
	f.Stop()
	f.Start()
	if !holds(t, &f.List, list.Any, "alice") {
		t.Error("a list that was stopped forgot its entries")
	}
}

// TestLookupsWhileChanging looks up while the file changes: who is in every version
// is never missed, who is in none is never found.
func TestLookupsWhileChanging(t *testing.T) {
	path := file(t, "always\n10.0.0.0/8\n")
	f := open(t, path, list.FileOptions{Every: time.Millisecond})
	f.Start()
	done := make(chan struct{})
	var lookups sync.WaitGroup
	for range 4 {
		lookups.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				yes, err := f.Has(context.Background(), list.Any, "always")
				in, err2 := f.Has(context.Background(), list.IP, "10.9.9.9")
				no, err3 := f.Has(context.Background(), list.Any, "never")
				if !yes || !in || no || err != nil || err2 != nil || err3 != nil {
					t.Error("a lookup was wrong while the file changed")
					return
				}
			}
		})
	}
	for i := range 10 {
		name := fmt.Sprint("v", i)
		write(t, path, "always\n10.0.0.0/8\n"+name+"\n")
		eventually(t, name, func() bool { return holds(t, &f.List, list.Any, name) })
	}
	close(done)
	lookups.Wait()
}
