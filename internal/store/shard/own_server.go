package shard

import (
	"context"
	"fmt"
	"strconv"
)

// Ping returns an error unless the server answers, and has read what it has on its disk.
func (s *Client) Ping(ctx context.Context) error { return Explain(s.Redis.Ping(ctx).Err()) }

// Shutdown asks the server to end. It syncs its append-only file before.
func (s *Client) Shutdown(ctx context.Context) error {
	return Explain(s.Redis.ShutdownNoSave(ctx).Err())
}

// SetMaxMemory sets the server's maxmemory, in bytes, until its next start.
func (s *Client) SetMaxMemory(ctx context.Context, bytes int64) error {
	return Explain(s.Redis.ConfigSet(ctx, "maxmemory", strconv.FormatInt(bytes, 10)).Err())
}

// EndFences ends what sales wait for, so that none waits for an edge that was killed, or for what it knew. Call it
// only where none can live: before the first edge of a server that only this process reaches, and that has kept all
// it acknowledged. The next edge begins a new term.
func (s *Client) EndFences(ctx context.Context) error {
	ids, err := s.Redis.SMembers(ctx, s.SalesKey()).Result()
	if err != nil {
		return Explain(err)
	}
	for _, id := range ids {
		switch r, _, _, err := s.Beat(ctx, id, &Beat{Edge: "-", Does: "off"}); {
		case err != nil:
			return err
		case r.Code() == "invalid":
			return fmt.Errorf("sale %s: fence refuses %q", id, r.Text(1))
		}
	}
	return nil
}
