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

// ErrUnavailable wraps every failure to get an answer from Redis. Whether the
// operation ran is then unknown, unless ErrNotSent is wrapped too.
var ErrUnavailable = errors.New("redis does not answer")

// ErrNewerSchema: a newer edge has changed the layout of the keys.
var ErrNewerSchema = errors.New("redis holds data of a newer stockgate: update this edge")

// ErrMemoryPolicy: Redis would throw stock away when its memory is full.
var ErrMemoryPolicy = errors.New("redis may evict keys")

// ErrNotSent says that an operation surely did not run.
var ErrNotSent = errors.New("nothing was sent")

// ErrNoSale: Redis knows no such sale.
var ErrNoSale = errors.New("no such sale")

// ErrRefused wraps what an operator asked for and what the state of the sale does
// not allow. Nothing has changed.
var ErrRefused = errors.New("refused")

func Refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// restoringError: a sale is being restored, and nobody may touch it.
type restoringError struct{}

func (restoringError) Error() string {
	return "the sale is being rebuilt from the ledger: try again when that is done; if it broke off, run `caddy stockgate rebuild` again"
}

// Is says that it is as if Redis did not answer: whatever was asked for may be asked
// for again.
func (restoringError) Is(target error) bool { return target == ErrUnavailable }

// ErrRestoring is an ErrUnavailable: the sale is being restored.
var ErrRestoring error = restoringError{}

// hints say what an operator can do about an error of Redis. With most of them it
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
	{"NOAUTH", "it asks for a password", true},
	{"WRONGPASS", "it refuses the password", true},
	{"NOPERM", "its user may not run what stockgate needs: see docs/operate.md", true},
	{"The user executing the script", "its user may not run what stockgate's scripts need: see docs/operate.md", false},
}

// explain wraps what go-redis says in ErrUnavailable, with what an operator can do
// about it.
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

// brokenConnection says that the connection ended under a call.
func BrokenConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// scriptFailed says that a script ended with an error of its own, before it wrote.
func ScriptFailed(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && !neverBegan(err) && strings.Contains(said.Error(), "script") && !strings.HasPrefix(said.Error(), "BUSY")
}

// ErrStarting: the edge has not heard from Redis yet.
var ErrStarting = errors.New("redis has not answered yet")
