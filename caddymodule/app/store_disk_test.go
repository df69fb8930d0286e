package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A store whose disk is full is unavailable to buyers, says what to do in doctor and metrics, and sells on by
// itself when there is room. Every order that a buyer was told of is there.
func TestStoreOnAFullDisk(t *testing.T) {
	s := sitetest.Open(t, nil)
	useGate(s, nil)
	// a longer file than the limit fails to grow as on a full disk, for root too
	limit := s.File("limit", "200") // blocks of 512 bytes
	program := s.File("redis-server", "#!/bin/sh\ntrap '' XFSZ\nulimit -f \"$(cat '"+limit+"')\"\nexec redis-server \"$@\"\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Load(map[string]any{"store": map[string]any{"dir": filepath.Join(s.Dir, "stock"), "redis_server": program, "timeout": "2s"}})
	openToBidders(s)
	s.UntilScraped(map[string]string{"stockgate_store_up": "1", "stockgate_store_restarts_total": "0", "stockgate_store_rewriting": "0", "stockgate_store_cut_bytes": "0"})
	s.Eventually("how long the disk lasts", func() (string, bool) {
		all := s.Scrape()
		for _, name := range []string{"stockgate_store_files_bytes", "stockgate_store_disk_free_bytes", "stockgate_store_disk_lasts_seconds",
			`stockgate_store_sync_seconds{quantile="0.5"}`, `stockgate_store_sync_seconds{quantile="0.99"}`, "stockgate_store_sync_seconds_count"} {
			if all[name] == "" || all[name] == "0" {
				return name, false
			}
		}
		return "", true
	})
	if a := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(a.Body, "the files of the store have") || !strings.Contains(a.Body, "left on the disk of") {
		t.Errorf("the doctor says\n%s", a.Body)
	}

	sold := 0
	becomesFull := func() bool {
		switch got := bidFor(s, bid{buyer: fmt.Sprint("b", sold), skus: "plain"}); got {
		case "sold":
			sold++
			return false
		case "unavailable":
			return true
		default:
			t.Fatalf("order %d: %s", sold, got)
			return true
		}
	}
	for !becomesFull() {
	}
	if sold == 0 {
		t.Fatal("nothing was sold before the disk was full")
	}
	s.Eventually("doctor and log say what to do", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "")
		return a.Body, strings.Contains(a.Body, "make room on the disk, and it goes on by itself")
	})

	if err := os.WriteFile(limit, []byte("unlimited"), 0o600); err != nil {
		t.Fatal(err)
	}
	becomes(s, "sold", bid{buyer: "after", skus: "plain"})
	s.Eventually("it is up", func() (string, bool) {
		all := s.Scrape()
		return fmt.Sprint(all["stockgate_store_up"]), all["stockgate_store_up"] == "1" && all["stockgate_store_restarts_total"] != "0"
	})
	// the order that got no answer may be sold or not; all others are
	s.Eventually("every order is there", func() (string, bool) {
		units, _ := strconv.Atoi(s.Scrape()[unitsOf("plain", "", "confirmed")])
		return fmt.Sprintf("%d of %d", units, sold+1), units >= sold+1
	})
}

// A server that cannot start again is down in metrics and doctor, with the reason.
func TestStoreDown(t *testing.T) {
	s := sitetest.Open(t, nil)
	program := s.File("redis-server", "#!/bin/sh\n[ -e '"+s.Path("broken")+"' ] && { echo it is broken; exit 1; }\nexec redis-server \"$@\"\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Load(map[string]any{"store": map[string]any{"dir": filepath.Join(s.Dir, "stock"), "redis_server": program}})
	s.UntilScraped(map[string]string{"stockgate_store_up": "1"})
	pid, err := strconv.Atoi(serverOf(s))
	if err != nil {
		t.Fatal(err)
	}
	s.File("broken", "")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.UntilScraped(map[string]string{"stockgate_store_up": "0"})
	s.Eventually("the doctor says why", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/doctor", "")
		return a.Body, strings.Contains(a.Body, "does not run, and Caddy tries again: exit status 1") && strings.Contains(a.Body, "it said: it is broken")
	})
}
