package command_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/command"
)

// Of backups into one file at the same time one gets the name, and the others say that it exists.
func TestStoreBackupReplacesNoOther(t *testing.T) {
	ways := map[string]func(temp *os.File, name string) error{
		"with links": command.GiveName,
		"without links": func(temp *os.File, name string) error {
			temp.Close()
			return command.TakeName(temp.Name(), name)
		},
	}
	const backups, rounds = 8, 100
	for way, give := range ways {
		t.Run(way, func(t *testing.T) {
			for round := range rounds {
				dir := t.TempDir()
				name := filepath.Join(dir, "store.rdb")
				var files [backups]*os.File
				for i := range files {
					files[i] = written(t, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprint("backup ", i))
				}
				var errs [backups]error
				var all sync.WaitGroup
				for i, f := range files {
					all.Go(func() { errs[i] = give(f, name) })
				}
				all.Wait()
				first := -1
				for i, err := range errs {
					switch {
					case err == nil && first >= 0:
						t.Fatalf("round %d: backups %d and %d both have the name", round, first, i)
					case err == nil:
						first = i
					case !errors.Is(err, fs.ErrExist) && !strings.Contains(err.Error(), "exists, and a backup overwrites nothing"):
						t.Fatalf("round %d: %v", round, err)
					}
				}
				if has, err := os.ReadFile(name); err != nil || string(has) != fmt.Sprint("backup ", first) {
					t.Fatalf("round %d: backup %d has the name, and the file has %q, %v", round, first, has, err)
				}
				if _, err := os.Lstat(files[first].Name()); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("round %d: the temporary file is left: %v", round, err)
				}
			}
		})
	}
}

// written is a file that is open and has a text.
func written(t *testing.T, name, text string) *os.File {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}
