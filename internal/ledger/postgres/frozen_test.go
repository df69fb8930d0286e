package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/pgtest"
)

// freezing is a proxy between a drainer and PostgreSQL. From the first request that contains a
// text on, nothing reaches the server any more, and no connection ends.
type freezing struct {
	dsn    string
	frozen chan struct{} // closed when the request has come
	thaw   func()        // lets everything continue
}

func freeze(t *testing.T, server *pgtest.Server, at string) *freezing {
	t.Helper()
	config, err := pgx.ParseConfig(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	dir, err := os.MkdirTemp("", "ice") // t.TempDir may be too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	thaw := make(chan struct{})
	f := &freezing{dsn: "host=" + dir + " user=postgres sslmode=disable dbname=postgres", frozen: make(chan struct{}),
		thaw: sync.OnceFunc(func() { close(thaw) })}
	var once sync.Once
	var links sync.WaitGroup
	link := func(client net.Conn) {
		defer client.Close()
		there, err := net.Dial("unix", filepath.Join(config.Host, socket))
		if err != nil {
			return
		}
		defer there.Close()
		links.Go(func() {
			io.Copy(client, there)
			client.Close()
		})
		piece := make([]byte, 64<<10)
		for {
			n, err := client.Read(piece)
			if bytes.Contains(piece[:n], []byte(at)) {
				once.Do(func() {
					close(f.frozen)
					<-thaw
				})
			}
			if _, failed := there.Write(piece[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	links.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			links.Go(func() { link(client) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		f.thaw()
		links.Wait()
		os.RemoveAll(dir)
	})
	return f
}

// A drainer that freezes in the middle of a batch, or whose machine has left the network, does
// not block its sale: another one continues, and the unfinished batch never happens.
func TestDrainerFreezes(t *testing.T) {
	server := pgtest.Start(t)
	for name, at := range map[string]string{"after it has locked": `copy "stockgate_movements"`, "when it ends": "UPDATE stockgate_drains"} {
		t.Run(name, func(t *testing.T) {
			f := freeze(t, server, at)
			frozen, other := open(t, f.dsn), open(t, server.DSN())
			if err := other.Migrate(ledgertest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			shard := ledgertest.History(t, 3, 100)
			all := ledgertest.Movements(t, shard.Journal)
			b := &ledger.Batch{Epoch: shard.Epoch, Movements: all}
			if _, ours, err := frozen.Acquire(ledgertest.Soon(t), name, "A", time.Millisecond); !ours || err != nil {
				t.Fatalf("lease: %v, error %v", ours, err)
			}
			ctx, cancel := context.WithCancel(ledgertest.Soon(t))
			done := make(chan error, 1)
			go func() { done <- frozen.Append(ctx, name, "A", b) }()
			<-f.frozen
			ledgertest.Eventually(t, "another one has the sale", func() bool {
				at, ours, err := other.Acquire(ledgertest.Soon(t), name, "B", time.Hour)
				return err == nil && ours && at == ledger.Position{}
			})
			if err := other.Append(ledgertest.Soon(t), name, "B", b); err != nil {
				t.Fatal(err)
			}
			f.thaw()
			if err := <-done; err == nil {
				t.Error("Append reports the interrupted batch as stored")
			}
			cancel()
			ledgertest.Same(t, ledgertest.Read(t, other, name, shard.Epoch), all)
			if err := frozen.Append(ledgertest.Soon(t), name, "A", b); !errors.Is(err, ledger.ErrNotOwner) {
				t.Errorf("the drainer that froze continues: %v", err)
			}
		})
	}
}

// A batch that the ledger has reported as stored survives a crash of the server, whatever
// durability the server is configured for.
func TestCommitsAreDurable(t *testing.T) {
	server := pgtest.Start(t, "synchronous_commit=off", "wal_writer_delay=10s", "checkpoint_timeout=1h")
	l := open(t, server.DSN())
	if err := l.Migrate(ledgertest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	shard := ledgertest.History(t, 4, 20)
	all := ledgertest.Movements(t, shard.Journal)
	if _, ours, err := l.Acquire(ledgertest.Soon(t), "s", "A", time.Hour); !ours || err != nil {
		t.Fatalf("lease: %v, error %v", ours, err)
	}
	if err := l.Append(ledgertest.Soon(t), "s", "A", &ledger.Batch{Epoch: shard.Epoch, Movements: all}); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Restart()
	l = open(t, server.DSN())
	ledgertest.Same(t, ledgertest.Read(t, l, "s", shard.Epoch), all)
	to := ledger.Position{Epoch: shard.Epoch + 1}
	if err := l.Restart(ledgertest.Soon(t), "s", ledger.Position{Epoch: shard.Epoch, Seq: all[len(all)-1].Seq}, to); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Restart()
	if at, err := open(t, server.DSN()).Position(ledgertest.Soon(t), "s"); at != to || err != nil {
		t.Errorf("the position after a restart is %+v, error %v", at, err)
	}
}
