package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestReadVersion(t *testing.T) {
	for said, want := range map[string]string{
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d7c971a948f0": "redis 7.0.15",
		"Valkey server v=8.1.0 sha=0:0 malloc=libc bits=64 build=0":                                "valkey 8.1.0",
		"Redis server v=10.2-rc1 sha=0":                                                            "redis 10.2-rc1",
		"Redis server v=6.2.14 sha=0":                                                              "too old",
		"nginx version: nginx/1.22":                                                                "no redis-server",
		"":                                                                                         "no redis-server",
	} {
		p, err := readVersion(said)
		if err == nil && p.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", said, p, err, want)
		}
	}
}

// A server reads what one of its kind wrote that was not newer, and Valkey what Redis wrote up to 7.2.
func TestOlderServers(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		wrote, starts string
		reads         bool
	}{
		{"Redis 7.0.15", "Redis 7.0.11", true},
		{"Redis 7.0.15", "Redis 7.2.0", true},
		{"Redis 7.2.1", "Redis 7.0.15", false},
		{"Redis 8.0.0", "Redis 7.9.9", false},
		{"Redis 7.2.5", "Valkey 7.2.5", true},
		{"Redis 7.2.5", "Valkey 8.1.0", true},
		{"Redis 7.4.0", "Valkey 8.1.0", false},
		{"Valkey 7.2.5", "Redis 7.2.5", false},
		{"Valkey 8.1.0", "Valkey 8.0.2", false},
	} {
		of := func(text string) program {
			kind, version, _ := strings.Cut(text, " ")
			p, err := readVersion(kind + " server v=" + version)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if err := of(c.wrote).note(dir); err != nil {
			t.Fatal(err)
		}
		err := of(c.starts).reads(dir)
		if (err == nil) != c.reads || err != nil && !strings.Contains(err.Error(), "was written by "+strings.ToLower(c.wrote)) {
			t.Errorf("%s after %s: %v", c.starts, c.wrote, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, writerFile), []byte("what?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (program{kind: "redis", major: 7}).reads(dir); err == nil || !strings.Contains(err.Error(), `"what?"`) {
		t.Errorf("a file that is no version: %v", err)
	}
}

// A program that is no redis-server is named, and what to install.
func TestFind(t *testing.T) {
	script := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho hello\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"no-such-server": "there is no program no-such-server",
		script:           `is no redis-server or valkey-server: it says "hello"`,
	} {
		if _, err := Open(Options{Dir: "/", Program: name, Log: zap.NewNop()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", name, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := find(""); err == nil || !strings.Contains(err.Error(), "apt install redis-server") {
		t.Errorf("without any: %v", err)
	}
}
