package shard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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
	// Addresses are host:port, or one redis:// or rediss:// URL. Several addresses need
	// Sentinel or Cluster. Default of the port: 6379, of a sentinel's 26379.
	Addresses []string
	// Sentinel is the master's name. Addresses are then those of the sentinels.
	Sentinel string
	// Cluster says that Addresses are nodes of a Redis Cluster.
	Cluster  bool
	Username string
	Password string
	// TLS connects with TLS, verifying the server's certificate.
	TLS bool
	// Timeout bounds how long an attempt waits for Redis. Default: 500 ms.
	Timeout time.Duration
	// ReplicaAcks is how many replicas must have an operation before its caller gets the
	// answer; 0: none. ReplicaAcksWait is how long to wait for them. Default: 50 ms.
	ReplicaAcks     int
	ReplicaAcksWait time.Duration
	// NoFence sells from a Redis that was promoted or restarted without asking what it
	// lacks: what it has lost is sold again. See docs/fence.md.
	NoFence bool
	// FenceWait is how long a sale waits then for edges that do not come; it must be more than Lease.
	// Default: 10 s.
	FenceWait time.Duration
	// Lease is how long an edge believes answers after Redis has last heard it. Default: 3 s.
	Lease time.Duration
	// Prefix begins every key. Default: stockgate.
	Prefix string
	// Scripts are those for the kind of server. Default: Redis.
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
	if o.Scripts == nil {
		o.Scripts = lua.Redis()
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
	_, err := o.Universal()
	return err
}

// withPorts adds the usual port to addresses that are only a host.
func withPorts(addresses []string, sentinels bool) []string {
	port := "6379"
	if sentinels {
		port = "26379"
	}
	out := slices.Clone(addresses)
	for i, a := range out {
		if host := strings.Trim(a, "[]"); isHost(host) {
			out[i] = net.JoinHostPort(host, port)
		}
	}
	return out
}

// isHost tells whether an address is a name or an IP address without a port.
func isHost(a string) bool {
	if _, err := netip.ParseAddr(a); err == nil {
		return true
	}
	return a != "" && !strings.ContainsAny(a, ":/@ ")
}

// Universal returns the options of a client. Its Addrs are host:port: a URL, which may hold a
// password, is read.
func (o *Options) Universal() (*redis.UniversalOptions, error) {
	u := &redis.UniversalOptions{
		Addrs:      o.Addresses,
		MasterName: o.Sentinel, IsClusterMode: o.Cluster,
		Username: o.Username, Password: o.Password,
		Protocol: 2,
		// After a timeout or a lost reply it is unknown whether a script ran. Only this package
		// knows which calls are safe to repeat.
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
		DialTimeout:           o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
		DialerRetries: 1,
		PoolSize:      64,
		Dialer:        o.Dialer,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.TLS {
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	for i, a := range o.Addresses {
		if !strings.Contains(a, "://") {
			if strings.Contains(a, "@") { // what stands before it may be a password
				return nil, errors.New("redis: an address with a user or a password is a URL: write redis://user:password@host:6379/0")
			}
			if _, _, err := net.SplitHostPort(a); err != nil {
				return nil, fmt.Errorf("redis: address %q is not host:port", a)
			}
			continue
		}
		if len(o.Addresses) > 1 {
			return nil, errors.New("redis: give several addresses as host:port; a URL stands alone")
		}
		parsed, err := redis.ParseURL(a)
		if err != nil || parsed.Network != "tcp" || strings.Contains(a, "#") {
			// the URL may hold a password: the error names the fault, not the URL
			return nil, errors.New("redis: the URL cannot be read; write redis://user:password@host:6379/0 or rediss://…; percent-encode what is special in the password: # as %23, / as %2F, ? as %3F, @ as %40, % as %25")
		}
		if o.Cluster && parsed.DB != 0 {
			return nil, errors.New("redis: a cluster has only database 0")
		}
		if parsed.Username != "" && o.Username != "" || parsed.Password != "" && o.Password != "" {
			return nil, errors.New("redis: the URL has a user or a password, and `username` or `password` gives it too: write it in one place")
		}
		u.Addrs = append([]string(nil), o.Addresses...)
		u.Addrs[i], u.DB = parsed.Addr, parsed.DB
		if parsed.Username != "" {
			u.Username = parsed.Username
		}
		if parsed.Password != "" {
			u.Password = parsed.Password
		}
		if parsed.TLSConfig != nil {
			u.TLSConfig = parsed.TLSConfig
		}
	}
	if u.TLSConfig != nil {
		// Every server is verified against the name under which it is dialed: the nodes of a
		// cluster and the master behind a sentinel have names of their own.
		u.TLSConfig.ServerName = ""
		if !o.Cluster && o.Sentinel == "" {
			u.TLSConfig.ServerName, _, _ = net.SplitHostPort(u.Addrs[0])
		}
	}
	return u, nil
}
