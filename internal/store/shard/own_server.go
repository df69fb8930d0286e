package shard

import (
	"context"
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

// ForgetEdges has no sale wait for an edge that was killed. Call it only where none can live: before the
// first edge of a server that only this process reaches, and that has kept all it acknowledged.
func (s *Client) ForgetEdges(ctx context.Context) error {
	ids, err := s.Redis.SMembers(ctx, s.SalesKey()).Result()
	if err != nil || len(ids) == 0 {
		return Explain(err)
	}
	pipe := s.Redis.Pipeline()
	for _, id := range ids {
		pipe.Unlink(ctx, s.FenceKeys(id)[EdgesKey])
	}
	_, err = pipe.Exec(ctx)
	return Explain(err)
}
