package child

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Users of the server. The edge may do what sales need; the keeper ends the server, sets its memory and has it
// write a copy for a backup.
const (
	edgeUser   = "stockgate"
	keeperUser = "keeper"
)

const configHead = "# Stockgate writes this file again at each start: set options of `store` in the Caddyfile instead. sha256 "

// config is the server's configuration: a socket that this user alone can open, every answer on the disk
// before it is given, and nothing that another program may change.
func config(dir, password string, memory int64) string {
	hash := sha256.Sum256([]byte(password))
	word := "#" + hex.EncodeToString(hash[:])
	lines := []string{
		"port 0",
		"unixsocket " + strconv.Quote(filepath.Join(dir, socketFile)),
		"unixsocketperm 700",
		"dir " + strconv.Quote(dir),
		"databases 1",
		"daemonize no",
		"supervised no",
		`logfile ""`,
		"maxmemory " + strconv.FormatInt(memory, 10),
		"maxmemory-policy noeviction",
		"appendonly yes",
		"appendfsync always",
		"no-appendfsync-on-rewrite no",
		// Only an answer that was never given can be cut at the end of the file by a crash.
		"aof-load-truncated yes",
		`save ""`,
		"dbfilename " + savedFile,
		// events of a millisecond and more are kept for the doctor
		"latency-monitor-threshold 1",
		// Nothing logs in as the default user, but Redis reads its file as that user: without rights it would
		// skip all transactions, see https://github.com/redis/redis/issues/14541.
		"user default off ~* &* +@all",
		"user " + edgeUser + " on " + word + " ~* &* -@all +@read +@write +@scripting +@pubsub +@connection +@transaction -@dangerous +info +time +wait +config|get +latency +acl|dryrun",
		"user " + keeperUser + " on " + word + " -@all +@connection +info +config +shutdown +bgsave",
	}
	return strings.Join(lines, "\n") + "\n"
}

// writeConfig writes the configuration, with a checksum by which a change by hand is found.
func writeConfig(dir, password string, memory int64) error {
	text := config(dir, password, memory)
	return replace(filepath.Join(dir, configFile), configHead+sum(text)+"\n"+text)
}

// changedByHand reports whether the configuration is not the one that was written.
func changedByHand(dir string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	return head != configHead+sum(rest), nil
}

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}
