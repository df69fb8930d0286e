package shard

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replication asks primaries what their replicas have, on connections of its own: a WAIT blocks its
// connection.
type Replication struct {
	shard *Client
	redis link
}

// OpenReplication prepares the connections. It does not dial.
func (s *Client) OpenReplication() (*Replication, error) {
	client, err := waiting(s)
	if err != nil {
		return nil, err
	}
	return &Replication{s, client}, nil
}

// Close ends a WAIT under way.
func (r *Replication) Close() error { return r.redis.Close() }

// PrimaryServer is the server of some sales.
type PrimaryServer struct {
	// Addr distinguishes the nodes of a cluster; empty: there is one server.
	Addr  string
	shard *Client
	redis link // a *redis.Client
}

// PrimaryOf finds the server of a sale; in a cluster that may take so long.
func (r *Replication) PrimaryOf(ctx context.Context, sale string, within time.Duration) (PrimaryServer, error) {
	cluster, apart := behind(r.redis).(*redis.ClusterClient)
	if !apart {
		single, _ := behind(r.redis).(*redis.Client)
		return PrimaryServer{"", r.shard, single}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	master, err := cluster.MasterForKey(ctx, r.shard.ShardKeys(sale)[MetaKey])
	if err != nil {
		return PrimaryServer{}, Explain(err)
	}
	return PrimaryServer{master.Options().Addr, r.shard, master}, nil
}

// Metas reads fields of sales in one round trip.
func (p *PrimaryServer) Metas(ctx context.Context, sales []string, fields ...string) ([]Fields, error) {
	pipe := behind(p.redis).Pipeline()
	metas := readMetas(ctx, p, pipe, sales, fields)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Explain(err)
	}
	return values(metas), nil
}

func readMetas(ctx context.Context, p *PrimaryServer, pipe redis.Pipeliner, sales, fields []string) []*redis.SliceCmd {
	out := make([]*redis.SliceCmd, len(sales))
	for i, sale := range sales {
		out[i] = pipe.HMGet(ctx, p.shard.ShardKeys(sale)[MetaKey], fields...)
	}
	return out
}

func values(metas []*redis.SliceCmd) []Fields {
	out := make([]Fields, len(metas))
	for i, m := range metas {
		out[i] = m.Val()
	}
	return out
}

// PrimaryConn is one connection to a primary, so that all its calls are to one server.
type PrimaryConn struct {
	*PrimaryServer
	conn link // a *redis.Conn
}

// Conn takes a connection. Its owner must close it.
func (p *PrimaryServer) Conn() *PrimaryConn { return &PrimaryConn{p, p.redis.(*redis.Client).Conn()} }

// Close gives the connection back.
func (c *PrimaryConn) Close() error { return c.conn.Close() }

// Ask reads what INFO says of replication, and fields of sales, in one round trip.
func (c *PrimaryConn) Ask(ctx context.Context, sales []string, fields ...string) (info map[string]string, metas []Fields, err error) {
	pipe := c.conn.(*redis.Conn).Pipeline()
	replication, read := pipe.Info(ctx, "replication"), readMetas(ctx, c.PrimaryServer, pipe, sales, fields)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, Explain(err)
	}
	return infoFields(replication.Val()), values(read), nil
}

// Await writes a heartbeat beside a sale, and waits until so many replicas have that and everything that
// was written before. It returns how many have it.
func (c *PrimaryConn) Await(ctx context.Context, sale string, replicas int, within time.Duration) (int, error) {
	pipe := c.conn.(*redis.Conn).Pipeline()
	written := heartbeat(ctx, c.shard, pipe, sale)
	wait := pipe.Do(ctx, "WAIT", replicas, within.Milliseconds())
	_, _ = pipe.Exec(ctx)
	if err := written.Err(); err != nil {
		return 0, Explain(err)
	}
	have, err := wait.Int()
	return have, Explain(err)
}
