package shard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable wraps every failure to get an answer from Redis. Unless the error also wraps
// ErrNotSent, it is unknown whether the operation ran.
var ErrUnavailable = errors.New("redis does not answer")

// ErrNewerSchema says that a newer edge has changed the layout of the keys.
var ErrNewerSchema = errors.New("redis holds data of a newer stockgate: update this edge")

// ErrMemoryPolicy says that Redis would evict stock when its memory is full.
var ErrMemoryPolicy = errors.New("redis may evict keys")

// ErrNotSent says that an operation certainly did not run.
var ErrNotSent = errors.New("nothing was sent")

// ErrNoSale says that Redis does not know the sale.
var ErrNoSale = errors.New("no such sale")

// ErrRefused wraps the refusal of an operator's request that the state of the sale does not
// allow. Nothing has changed.
var ErrRefused = errors.New("refused")

func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// restoringError says that a sale is being restored and refuses all other operations until
// then.
type restoringError struct{}

func (restoringError) Error() string {
	return "the sale is being rebuilt from the ledger: try again when that is done; if it broke off, run `caddy stockgate rebuild` again"
}

// Is treats the error as if Redis did not answer: callers may repeat the request.
func (restoringError) Is(target error) bool { return target == ErrUnavailable }

// ErrRestoring says that the sale is being restored. It is an ErrUnavailable.
var ErrRestoring error = restoringError{}

// fencedError says that a server may lack movements, and changes nothing until the edges have
// said what they know.
type fencedError struct{}

func (fencedError) Error() string {
	return "redis was promoted or restarted, and the sale waits until every edge has said what it knows: `caddy stockgate doctor` names the edges that are missing"
}

// Is treats the error as if Redis did not answer: callers may repeat the request.
func (fencedError) Is(target error) bool { return target == ErrUnavailable || target == ErrNotSent }

// ErrFenced says that the sale's shard is fenced, see lua/fence.lua. It is an ErrUnavailable
// and an ErrNotSent: nothing has changed.
var ErrFenced error = fencedError{}

// ErrNoLease says that the answer came when this process had no lease any more, or from another
// history than it knows: another server may be the primary by now. What the operation did may
// be lost.
var ErrNoLease = fmt.Errorf("%w: the answer came too late to count: another redis may have taken over", ErrUnavailable)

// hints say what an operator can do about an error of Redis. With most of these errors Redis
// refuses a script as a whole, before its first write.
var hints = []struct {
	prefix, help string
	refused      bool
}{
	{"OOM", "its memory is full: raise maxmemory", true},
	{"MISCONF", "it cannot write to its disk: see its log", true},
	{"NOREPLICAS", "too few replicas are connected: see min-replicas-to-write", true},
	{"READONLY", "it is a replica: point `redis` at the master, or use sentinel", true},
	{"LOADING", "it is still loading its data", true},
	{"TRYAGAIN", "the keys of this sale are being moved to another node: selling goes on when all are there", true},
	{"MOVED ", "it is a node of a cluster: write `cluster` in `redis`", true},
	{"ASK ", "it is a node of a cluster: write `cluster` in `redis`", true},
	{"CLUSTERDOWN", "no node of the cluster has this sale: see `redis-cli cluster nodes`", true},
	{"NOAUTH", "it asks for a password", true},
	{"WRONGPASS", "it refuses the password", true},
	{"NOPERM", "its user may not run what stockgate needs: see docs/redis.md", true},
	{"The user executing the script", "its user may not run what stockgate's scripts need: see docs/redis.md", false},
}

// Explain wraps an error of go-redis in ErrUnavailable, and adds what an operator can do about
// it.
func Explain(err error) error {
	if err == nil || errors.Is(err, ErrNotReplicated) {
		return err
	}
	if isWrongType(err) {
		return fmt.Errorf("%w: another client has written to stockgate's keys: run 'caddy stockgate doctor', which names those of a sale and says what to do (%w)", ErrUnavailable, err)
	}
	if redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(strings.ToLower(err.Error()), "'select'") {
		return fmt.Errorf("%w: its user may not choose a database: a database other than 0 needs +select in the user's ACL (%w)", ErrUnavailable, err)
	}
	for _, hint := range hints {
		if redis.HasErrorPrefix(err, hint.prefix) {
			return fmt.Errorf("%w: %s (%w)", ErrUnavailable, hint.help, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// neverBegan says that Redis itself refused to run a script.
func neverBegan(err error) bool {
	for _, hint := range hints {
		if hint.refused && redis.HasErrorPrefix(err, hint.prefix) {
			return true
		}
	}
	return false
}

// BrokenConnection says that the connection ended during a call.
func BrokenConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// ScriptFailed says that a script ended with an error of its own, before it wrote.
func ScriptFailed(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && !neverBegan(err) && strings.Contains(said.Error(), "script") && !strings.HasPrefix(said.Error(), "BUSY")
}

// ErrStarting says that the edge has had no answer from Redis yet.
var ErrStarting = errors.New("redis has not answered yet")

// NotLoaded reports whether Redis did not have the script of a call, which did nothing then.
func NotLoaded(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
