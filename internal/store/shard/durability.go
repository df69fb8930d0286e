package shard

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Durability is how the server of a sale keeps what it has acknowledged, see docs/guarantees.md.
type Durability struct {
	// Disk: what it has acknowledged is in its append-only file and on the disk, and no replica could
	// take its place. So it is there when this server starts again: class (a).
	Disk bool
	// Replicas: what it has acknowledged with replica_acks, all its replicas have. So it is there when
	// one of them is promoted: class (b).
	Replicas bool
}

// Has reports whether what is kept as other says is kept.
func (d Durability) Has(other Durability) bool {
	return (d.Disk || !other.Disk) && (d.Replicas || !other.Replicas)
}

// word is what lua/fence.lua calls it.
func (d Durability) word() string {
	switch {
	case d.Disk && d.Replicas:
		return "both"
	case d.Disk:
		return "disk"
	case d.Replicas:
		return "replicas"
	}
	return ""
}

// Standing is what a server says of itself.
type Standing struct {
	Durability
	// Rewriting: the append-only file is being written again. So it is as well until one counts that was
	// switched on a moment ago.
	Rewriting bool
	// Replid is its master_replid, which is in the name of the term that it began.
	Replid string
}

// Standing asks the server of a sale how it keeps what it acknowledges. What its user may not ask counts
// as not so.
func (s *Client) Standing(ctx context.Context, sale string) (Standing, error) {
	c := redis.Cmdable(behind(s.redis))
	if cluster, ok := behind(s.redis).(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, s.ShardKeys(sale)[MetaKey])
		if err != nil {
			return Standing{}, Explain(err)
		}
		c = node
	}
	pipe := c.Pipeline()
	config := pipe.ConfigGet(ctx, "*appendfsync*") // and no-appendfsync-on-rewrite
	persistence, replication := pipe.Info(ctx, "persistence"), pipe.Info(ctx, "replication")
	_, _ = pipe.Exec(ctx)
	for _, one := range []*redis.StringCmd{persistence, replication} {
		if err := one.Err(); err != nil {
			return Standing{}, Explain(err)
		}
	}
	file, fsync, role := infoFields(persistence.Val()), config.Val(), infoFields(replication.Val())
	replicas, err := strconv.Atoi(role["connected_slaves"])
	synced := fsync["appendfsync"] == "always" && fsync["no-appendfsync-on-rewrite"] == "no"
	return Standing{
		Durability: Durability{
			Disk:     err == nil && replicas == 0 && synced && file["aof_enabled"] == "1" && file["aof_last_write_status"] == "ok",
			Replicas: err == nil && s.Options.ReplicaAcks > 0 && replicas <= s.Options.ReplicaAcks,
		},
		Rewriting: file["aof_rewrite_in_progress"] != "0" || file["aof_rewrite_scheduled"] != "0",
		Replid:    role["master_replid"],
	}, nil
}
