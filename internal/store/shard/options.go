package shard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// DefaultTimeout is how long an attempt waits for Redis before it is refused.
const DefaultTimeout = 500 * time.Millisecond

// DefaultPrefix begins every key unless Options.prefix is set.
const DefaultPrefix = "stockgate"

// DefaultFenceWait is how long a fenced sale waits for edges that do not come.
const DefaultFenceWait = 10 * time.Second

// DefaultLease is how long an edge believes answers after Redis has last heard it.
const DefaultLease = 3 * time.Second

// Options says which Redis holds the stock, and how to reach it.
type Options struct {
	// Addresses are host:port, or one redis://, rediss:// or unix:// URL. Several addresses need
	// Sentinel or Cluster. Default of the port: 6379, of a sentinel's 26379.
	Addresses []string
	// Sentinel is the master's name. Addresses are then those of the sentinels.
	Sentinel string
	// SentinelUsername and SentinelPassword log in to the sentinels.
	SentinelUsername, SentinelPassword string
	// Cluster says that Addresses are nodes of a Redis Cluster.
	Cluster  bool
	Username string
	Password string
	// TLS connects with TLS, verifying the server's certificate.
	TLS bool
	// TLSFiles has the certificates, where the system has not. It needs TLS or rediss://.
	TLSFiles TLSFiles
	// Timeout bounds how long an attempt waits for Redis. Default: 500 ms.
	Timeout time.Duration
	// ReplicaAcks is how many replicas must have an operation before its caller gets the
	// answer; 0: none. ReplicaAcksWait is how long to wait for them. Default: 50 ms.
	ReplicaAcks     int
	ReplicaAcksWait time.Duration
	// NoFence sells from a Redis that was promoted or restarted without asking what it
	// lacks: what it has lost is sold again. See docs/failover.md.
	NoFence bool
	// FenceWait is how long a sale waits then for edges that do not come; it must be more than Lease.
	// Default: 10 s.
	FenceWait time.Duration
	// Lease is how long an edge believes answers after Redis has last heard it. Default: 3 s.
	Lease time.Duration
	// Prefix begins every key. Default: stockgate.
	Prefix string
	// Scripts are those for the kind of server. Default, of Open: Redis.
	Scripts *lua.Scripts
	// Dialer replaces the network, for a server in the same process.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Validate returns what is wrong with the options, and fills in their defaults.
func (o *Options) Validate() error {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.FenceWait == 0 {
		o.FenceWait = DefaultFenceWait
	}
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.ReplicaAcks > 0 && o.ReplicaAcksWait == 0 {
		o.ReplicaAcksWait = 50 * time.Millisecond
	}
	switch {
	case len(o.Addresses) == 0:
		return errors.New("redis: no address given; write `redis 127.0.0.1:6379`")
	case o.Timeout < 10*time.Millisecond || o.Timeout > time.Minute:
		return fmt.Errorf("redis: timeout %v is outside 10ms to 1m", o.Timeout)
	case strings.ContainsAny(o.Prefix, "{}: \t\r\n"):
		return fmt.Errorf("key_prefix %q: braces, colons and spaces are not possible in it", o.Prefix)
	case o.Sentinel == "" && o.SentinelUsername+o.SentinelPassword != "":
		return errors.New("redis: the user and the password of sentinels need `sentinel <master>`")
	case o.Sentinel != "" && o.Cluster:
		return errors.New("redis: sentinel and cluster exclude each other")
	case len(o.Addresses) > 1 && o.Sentinel == "" && !o.Cluster:
		return errors.New("redis: several addresses need `sentinel <master>` or `cluster`")
	case o.FenceWait <= o.Lease || o.FenceWait > 10*time.Minute:
		return fmt.Errorf("redis: fence waits %v, which must be more than %v, for so long an edge that does not come may still sell, and at most 10m", o.FenceWait, o.Lease)
	case o.ReplicaAcks < 0:
		return errors.New("redis: replica_acks must not be negative")
	case o.ReplicaAcks > 0 && o.Cluster:
		return errors.New("redis: replica_acks is not possible with cluster: WAIT does not name a node")
	case o.ReplicaAcks > 0 && o.ReplicaAcksWait < time.Millisecond:
		return fmt.Errorf("redis: replica_acks waits %v, which must be at least 1ms: to Redis less is for ever", o.ReplicaAcksWait)
	case o.ReplicaAcks > 0 && o.ReplicaAcksWait >= o.Timeout:
		return fmt.Errorf("redis: replica_acks waits %v, which must be less than timeout %v", o.ReplicaAcksWait, o.Timeout)
	}
	o.Addresses = withPorts(o.Addresses, o.Sentinel != "")
	u, err := universal(o)
	if err != nil {
		return err
	}
	return o.TLSFiles.validate(u.TLSConfig != nil)
}
