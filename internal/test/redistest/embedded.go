package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// EmbeddedServer is a Redis inside the test's process. Its clock can be stepped,
// which no real server allows.
type EmbeddedServer struct {
	t    T
	mini *miniredis.Miniredis
	addr string
}

// Embedded starts an embedded server, closed when the test ends.
func Embedded(t T) *EmbeddedServer {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatalf("redistest: start the embedded server: %v", err)
	}
	e := &EmbeddedServer{t: t, mini: m, addr: m.Addr()}
	t.Cleanup(e.Close)
	return e
}

// Addr is host:port of the embedded server.
func (e *EmbeddedServer) Addr() string { return e.addr }

// Client returns a new client, closed when the test ends.
func (e *EmbeddedServer) Client() *redis.Client { return newClient(e.t, e.addr, "") }

// SetTime sets the clock that TIME answers, in scripts too, and stops it there
// until the next SetTime. The zero time lets it follow the machine again. It
// does not make keys expire: TTLs of the embedded server stand still.
func (e *EmbeddedServer) SetTime(now time.Time) { e.mini.SetTime(now) }

// Close ends the embedded server; its data is gone. Closing twice is fine.
func (e *EmbeddedServer) Close() { e.mini.Close() }

// Each runs f once against a real redis-server and once against the embedded
// one, as the subtests "redis-server" and "embedded".
func Each(t *testing.T, f func(t *testing.T, b Backend)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { f(t, Start(t)) })
	t.Run("embedded", func(t *testing.T) { f(t, Embedded(t)) })
}
