package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The quick start of the README sells as it is printed, on other ports and with time enough for
// a slow machine: its files are written, its commands run, and what they print is compared.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "\n## Quick start\n")
	text, _, _ = strings.Cut(text, "\n## ")
	e := newEdge(t, "")
	text = strings.NewReplacer("localhost:8080", strings.Replace(e.addr, "127.0.0.1", "localhost", 1),
		"localhost:9000", strings.Replace(freeAddr(t), "127.0.0.1", "localhost", 1),
		"store stock #", "store "+filepath.Join(e.dir, "stock")+" {\n timeout 20s\n} #").Replace(text)

	files := map[string]string{"caddyfile": "Caddyfile", "yaml": "sale.yaml"}
	var console string
	for _, block := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if file, ok := files[block[1]]; ok {
			if err := os.WriteFile(filepath.Join(e.dir, file), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			delete(files, block[1])
		} else {
			console += block[2]
		}
	}
	if len(files) > 0 {
		t.Fatalf("the quick start lacks %v", files)
	}
	if err := os.Mkdir(filepath.Join(e.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(e.dir, "bin", "caddy")); err != nil {
		t.Fatal(err)
	}
	e.env = []string{"CADDY_ADMIN=unix/" + e.admin}
	e.startFile(filepath.Join(e.dir, "Caddyfile"))

	compared := 0
	for _, step := range strings.Split("\n"+console, "\n$ ")[1:] {
		line, want, _ := strings.Cut(step, "\n")
		if line == "make build" || line == "bin/caddy run" {
			continue // done above
		}
		command := exec.Command("sh", "-c", line)
		command.Dir, command.Env = e.dir, append(os.Environ(), append(e.env, beCaddy+"=1")...)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if want = strings.TrimSpace(want); want == "" {
			continue
		}
		compared++
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%s\nprints\n%s\nthe README says\n%s", line, got, want)
		}
	}
	if compared != 3 {
		t.Errorf("%d answers were compared, the README has two orders and the sale's numbers", compared)
	}
}
