package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/test/pgtest"
	"github.com/stockgate/stockgate/internal/test/ports"
)

// What was committed survives a crash and a stop.
func TestKillAndRestart(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE a (x int)")
	s.Kill()
	s.Kill()
	s.Restart()
	s.Exec("INSERT INTO a VALUES (1)")
	if text := s.Ask("SELECT x::text FROM a"); text != "1" {
		t.Errorf("a has %q", text)
	}
	s.Stop()
	s.Restart()
	s.Exec("INSERT INTO a SELECT 1 / count(*) FROM a")
	if one, two := s.Database(), s.Database(); one == two {
		t.Errorf("two databases are one: %s", one)
	}
}

// A server of StartTCP has databases for clients that know only host and port.
func TestStartTCP(t *testing.T) {
	s := pgtest.StartTCP(t, ports.For(t))
	url := s.DatabaseURL()
	if other := s.DatabaseURL(); other == url {
		t.Errorf("two databases are one: %s", url)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
