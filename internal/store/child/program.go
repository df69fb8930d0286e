package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// oldest is the first version that runs the scripts.
const oldest = 7

// program is a redis-server or a valkey-server.
type program struct {
	path         string
	kind         string // redis or valkey
	version      string // such as 7.0.15
	major, minor int
}

func (p program) String() string { return p.kind + " " + p.version }

// versionLine is what a server says of itself: Redis server v=7.0.15 …, Server v=8.1.0 …
var versionLine = regexp.MustCompile(`^(Redis|Valkey) server v=((\d+)\.(\d+)\S*)`)

// find returns the program of that name or path; empty: the first of those that are known.
func find(name string) (program, error) {
	names := []string{"redis-server", "valkey-server"}
	if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			return ask(path)
		}
	}
	if name != "" {
		return program{}, fmt.Errorf("store: there is no program %s: `redis_server` names a redis-server or valkey-server, by its path or by its name in PATH", name)
	}
	return program{}, errors.New("store: no redis-server is installed: on Debian and Ubuntu `apt install redis-server`, on Fedora `dnf install valkey`, on macOS `brew install redis`; " +
		"its own service is not needed. Or name the program: `redis_server /path/to/redis-server`")
}

// ask asks a program for its version.
func ask(path string) (program, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return program{}, fmt.Errorf("store: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return program{}, fmt.Errorf("store: %s does not say its version: %w", path, err)
	}
	p, err := readVersion(string(said))
	if err != nil {
		return program{}, fmt.Errorf("store: %s: %w", path, err)
	}
	p.path = path
	return p, nil
}

func readVersion(said string) (program, error) {
	found := versionLine.FindStringSubmatch(said)
	if found == nil {
		return program{}, fmt.Errorf("it is no redis-server or valkey-server: it says %q", strings.TrimSpace(said))
	}
	major, _ := strconv.Atoi(found[3])
	minor, _ := strconv.Atoi(found[4])
	p := program{kind: strings.ToLower(found[1]), version: found[2], major: major, minor: minor}
	if major < oldest {
		return program{}, fmt.Errorf("%s is too old for the scripts: use Redis %d or newer, or Valkey", p, oldest)
	}
	return p, nil
}

// reads refuses a directory that a newer server has written: this one could not read it.
func (p program) reads(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, writerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	kind, version, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	before, err := readVersion(title(kind) + " server v=" + version)
	if err != nil {
		return fmt.Errorf("store: %s in %s has %q, which is no version of a server: write the one that last ran there", writerFile, dir, strings.TrimSpace(string(text)))
	}
	if !p.follows(before) {
		return fmt.Errorf("store: %s was written by %s, and %s cannot read it: install %[2]s or newer; nothing is lost", dir, before, p)
	}
	return nil
}

// follows reports whether p reads what another one has written: a newer one of its kind does, and Valkey, which
// began with Redis 7.2, what Redis had until then.
func (p program) follows(before program) bool {
	newer := p.major > before.major || p.major == before.major && p.minor >= before.minor
	if p.kind == before.kind {
		return newer
	}
	return p.kind == "valkey" && (before.major < 7 || before.major == 7 && before.minor <= 2)
}

// note keeps the version of the server that runs.
func (p program) note(dir string) error {
	name := filepath.Join(dir, writerFile)
	if text, err := os.ReadFile(name); err == nil && string(text) == p.String()+"\n" {
		return nil
	}
	return replace(name, p.String()+"\n")
}

func title(kind string) string {
	if kind == "valkey" {
		return "Valkey"
	}
	return "Redis"
}
