package edgeruntime

import (
	"context"
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/store/backup"
	"github.com/stockgate/stockgate/internal/store/child"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// StoreOptions say which redis-server this process runs for itself, and where.
type StoreOptions struct {
	Dir     string // absolute
	Program string // a path or a name in PATH; empty: redis-server or valkey-server
	Memory  int64  // its maxmemory in bytes; 0: [child.DefaultMemory]
}

// StoreAddress stands for the address of a store's server.
func StoreAddress(dir string) string { return child.Address(dir) }

// storeServer is a server that configurations share, until the last one releases it.
type storeServer struct{ *child.Server }

// storeServers has the servers of this process, by their directories: a reload to other options goes on with
// the same one.
var storeServers = caddy.NewUsagePool()

// openStore leads options to the server of a store, which it starts if none runs; nil where there is none.
func openStore(a *StoreOptions, log *zap.Logger, o *shard.Options) (*storeServer, error) {
	if a == nil {
		return nil, nil
	}
	v, loaded, err := storeServers.LoadOrNew(a.Dir, func() (caddy.Destructor, error) {
		s, err := child.Open(child.Options{
			Dir: a.Dir, Program: a.Program, Memory: a.Memory, LookEvery: timing.CheckRedis.Now(), Log: log,
			Accepted: func(ctx context.Context, o shard.Options, at time.Time) error { return backup.GoOn(ctx, o, at, log) },
		})
		return &storeServer{s}, err
	})
	if err != nil {
		return nil, err
	}
	s := v.(*storeServer)
	if loaded {
		if err := s.Change(a.Memory); err != nil {
			return nil, errors.Join(err, s.release())
		}
	}
	s.Connect(o)
	if !loaded {
		if err := endFences(*o); err != nil {
			log.Warn("sales may wait for an edge that was killed, and go on then", zap.Error(err))
		}
	}
	return s, nil
}

// endFences has no sale of a store wait for edges of earlier processes. The lock of the store proves that
// they have ended, and all that they were promised is on the disk.
func endFences(o shard.Options) error {
	c, err := shard.Open(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), shard.LongestCall)
	defer cancel()
	return errors.Join(c.EndFences(ctx), c.Close())
}

// release gives up the server, which ends with its last user.
func (s *storeServer) release() error {
	if s == nil {
		return nil
	}
	_, err := storeServers.Delete(s.Status().Dir)
	return err
}

func (s *storeServer) Destruct() error { return s.Close() }

// StoreStatus is what a store does, and StoreSyncs how fast its disk is.
type (
	StoreStatus = child.Status
	StoreSyncs  = child.Syncs
)

// OwnServer is what the server of `store` does; nil: there is none.
func (d *Runtime) OwnServer() *StoreStatus {
	if d.store == nil {
		return nil
	}
	s := d.store.Status()
	return &s
}

// Backup has the server of `store` write all that it has, see [child.Server.Backup]. It is called only where there is one.
func (d *Runtime) Backup(ctx context.Context, stage func(what string)) (*StoreSaved, error) {
	return d.store.Backup(ctx, func(s child.Stage) { stage(string(s)) })
}

// StoreSaved is a copy of all that a store has.
type StoreSaved = child.Saved

// SyncTimes measures n times how long the disk of `store` takes to sync a record.
func (d *Runtime) SyncTimes(ctx context.Context, n int) (StoreSyncs, error) {
	return d.store.SyncTimes(ctx, n)
}
