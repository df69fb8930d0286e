package list_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// write makes a file with this content, in one step.
func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// file makes a file with this content and returns its path.
func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	write(t, path, content)
	return path
}

// open opens a list and stops it when the test ends.
func open(t testing.TB, path string, o list.FileOptions) *list.File {
	t.Helper()
	f, err := list.OpenFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	return f
}

// holds looks a value up.
func holds(t testing.TB, l *list.List, kind, value string) bool {
	t.Helper()
	yes, err := l.Has(context.Background(), kind, value)
	if err != nil {
		t.Fatalf("%s %q: %v", kind, value, err)
	}
	return yes
}

// eventually asks again and again until it is so. It never waits for a time to
// pass: it fails when nothing has come of it for very long.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
