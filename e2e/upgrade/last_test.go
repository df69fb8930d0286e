//go:build upgrade

package upgrade_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// last is where scripts/build-last leaves the last version.
const last = "../../bin/last"

// binary is the last version's caddy.
func binary(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(last, "caddy"))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Fatalf("%v: run scripts/build-last, or make upgrade", err)
	}
	return file
}

// lastFiles are the files of the last version whose names match a pattern, by their paths.
func lastFiles(t *testing.T, wanted func(name string) bool) map[string]string {
	t.Helper()
	archive, err := os.Open(filepath.Join(last, "source.tar"))
	if err != nil {
		t.Fatalf("%v: run scripts/build-last, or make upgrade", err)
	}
	defer archive.Close()
	files := make(map[string]string)
	for r := tar.NewReader(archive); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg || !wanted(head.Name) {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[head.Name] = string(text)
	}
}

// isCaddyfile reports whether a file is one that users write, and not a golden file.
func isCaddyfile(name string) bool {
	base := path.Base(name)
	return !strings.Contains(name, "testdata/") && !strings.HasPrefix(name, "bench/") &&
		(base == "Caddyfile" || strings.HasSuffix(base, ".Caddyfile") || strings.HasPrefix(base, "Caddyfile."))
}
