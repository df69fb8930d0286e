package shard

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// heartbeatFor is how long the key of a heartbeat is kept.
const heartbeatFor = time.Minute

// heartbeat adds to a pipeline a write that reaches the replicas and changes nothing of a
// sale, so that a WAIT after it waits for everything that was written before. In a cluster
// the replicas do not get what is published, so there it sets a key beside the sale's shard.
func heartbeat(ctx context.Context, s *Client, pipe redis.Pipeliner, sale string) *redis.Cmd {
	if s.Options.Cluster {
		return pipe.Do(ctx, "SET", s.prefix+":{"+sale+".0}:heartbeat", 1, "PX", heartbeatFor.Milliseconds())
	}
	return pipe.Do(ctx, "PUBLISH", s.acksChannel(), "")
}
