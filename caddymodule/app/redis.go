package app

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Redis says which Redis holds the stock.
type Redis struct {
	// Embedded runs a Redis in this process. Its data is lost when the process ends, and the
	// edge sells only to clients on this machine. Excludes all other options but timeout.
	Embedded bool `json:"embedded,omitempty"`
	// Addresses are host:port of servers, or one `redis://`, `rediss://` or `unix://` URL, which may name user, password and
	// database; here or in the option's line. Required.
	Addresses []string `json:"addresses,omitempty"`
	// Sentinel is the master's name; the addresses are then the sentinels'.
	Sentinel string `json:"sentinel,omitempty"`
	// SentinelUsername is the user at the sentinels. Default: none.
	SentinelUsername string `json:"sentinel_username,omitempty"`
	// SentinelPassword is the password there. It may be a placeholder.
	SentinelPassword string `json:"sentinel_password,omitempty"`
	// Cluster: the addresses are nodes of a Redis Cluster.
	Cluster bool `json:"cluster,omitempty"`
	// Username is the ACL user. Default: none.
	Username string `json:"username,omitempty"`
	// Password may be a placeholder, which keeps it out of config dumps; not with one in the URL.
	Password string `json:"password,omitempty"`
	// TLS connects with TLS, also to sentinels and nodes. Default: off.
	TLS bool `json:"tls,omitempty"`
	// TLSFiles are the certificates of TLS. Default: the authorities of the system, and no client certificate.
	TLSFiles *RedisTLS `json:"tls_files,omitempty"`
	// Timeout is how long an attempt waits; then it is `unavailable`. Default: 500ms.
	Timeout caddy.Duration `json:"timeout,omitempty"`
	// ReplicaAcks is how many replicas must have a change before it is acknowledged, and how long to wait; then the answer
	// is 503. Not with `cluster`. Default: 0, 50ms.
	ReplicaAcks int `json:"replica_acks,omitempty"`
	// ReplicaAcksWait bounds the wait for these replicas. Default: 50ms.
	ReplicaAcksWait caddy.Duration `json:"replica_acks_wait,omitempty"`
	// FenceWait is how long a sale waits, after its Redis was promoted or restarted, for
	// edges that do not say what they know. Default: 10s.
	FenceWait caddy.Duration `json:"fence_wait,omitempty"`
	// FenceOff sells at once from such a Redis: what it has lost is sold again. All edges must
	// have the same setting.
	FenceOff bool `json:"fence_off,omitempty"`
	// AtRisk is what a failover may lose of a sale: units, or the age of the oldest; at it, attempts are `unavailable`.
	// Required with `cluster`, and with `sentinel` without `replica_acks`. Default: `any`.
	AtRisk string `json:"at_risk,omitempty"`
}

func (r *Redis) options(prefix string) (shard.Options, error) {
	o := shard.Options{
		Sentinel: r.Sentinel, Cluster: r.Cluster, TLS: r.TLS,
		Timeout:     time.Duration(r.Timeout),
		ReplicaAcks: r.ReplicaAcks, ReplicaAcksWait: time.Duration(r.ReplicaAcksWait),
		FenceWait: time.Duration(r.FenceWait), NoFence: r.FenceOff,
		Prefix: prefix,
	}
	var err error
	for _, text := range []struct {
		name, value string
		into        *string
	}{
		{"username", r.Username, &o.Username}, {"password", r.Password, &o.Password},
		{"sentinel's username", r.SentinelUsername, &o.SentinelUsername}, {"sentinel's password", r.SentinelPassword, &o.SentinelPassword},
	} {
		if *text.into, err = directive.Fill(text.value); err != nil {
			return o, fmt.Errorf("redis: %s %w", text.name, err)
		}
	}
	if o.TLSFiles, err = r.TLSFiles.fill(); err != nil {
		return o, fmt.Errorf("redis: %w", err)
	}
	for _, a := range r.Addresses {
		if a, err = directive.FillAll(a); err != nil {
			return o, fmt.Errorf("redis: address %w", err)
		}
		o.Addresses = append(o.Addresses, a)
	}
	if r.Embedded {
		if len(r.Addresses) > 0 || r.Sentinel != "" || r.SentinelUsername != "" || r.SentinelPassword != "" || r.Cluster || r.TLS || r.TLSFiles != nil || r.Username != "" || r.Password != "" || r.ReplicaAcks != 0 || r.FenceWait != 0 || r.FenceOff {
			return o, fmt.Errorf("redis: `embedded` stands alone; only timeout goes with it")
		}
		o.Addresses = []string{"127.0.0.1:0"} // replaced by the real one after the start
	}
	err = o.Validate() // completes the defaults
	return o, err
}

// readRedis reads the option of that name: redis, which may be embedded or wait for
// replicas, or rate_redis.
func readRedis(into **Redis, name string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		inline, err := directive.Arguments(d, usage, 0, -1)
		if err != nil {
			return err
		}
		at := *d // where redis is, for errors about all of it
		r := new(Redis)
		options := map[string]directive.Option{
			"address":  {Usage: "address <address...>", Read: directive.Texts(&r.Addresses)},
			"sentinel": {Usage: "sentinel <master>", Read: r.readSentinel},
			"cluster":  {Usage: "cluster", Read: directive.Flag(&r.Cluster)},
			"username": {Usage: "username <name>", Read: directive.Text(&r.Username)},
			"password": {Usage: "password <password>", Read: directive.Text(&r.Password)},
			// connects with TLS, also to sentinels and nodes.
			"tls":     {Usage: "tls", Read: r.readTLS},
			"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&r.Timeout)},
		}
		if name == "redis" {
			options["replica_acks"] = directive.Option{Usage: "replica_acks <number> [<duration>]", Read: r.readReplicaAcks}
			// how long a sale waits, after its Redis was promoted or restarted, for edges that have not said what they know;
			// more than 3s. `off`: it sells at once, also again what Redis has lost. All edges must have the same. Default:
			// 10s.
			options["fence"] = directive.Option{Usage: "fence <duration> | off", Read: r.readFence}
			options["at_risk"] = directive.Option{Usage: "at_risk any | <units> | <duration>", Read: directive.Text(&r.AtRisk)}
		}
		err = directive.ReadBlock(d, options)
		embedded := slices.Contains(inline, "embedded")
		switch {
		case err != nil:
			return err
		case len(inline) > 0 && len(r.Addresses) > 0:
			return at.Errf("%s has addresses in its line and in its block: write them in one place", name)
		case len(inline)+len(r.Addresses) == 0:
			return at.Errf("%s has no address: write `%s 127.0.0.1:6379`", name, name)
		case embedded && name != "redis":
			return at.Errf("%s embedded would be the memory of this process: leave %s out", name, name)
		case embedded && len(inline) > 1:
			return at.Errf("redis embedded runs in this process: write no address beside it")
		case embedded:
			r.Embedded = true
		case len(inline) > 0:
			r.Addresses = inline
		}
		*into = r
		return nil
	}
}

func (r *Redis) readReplicaAcks(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	if r.ReplicaAcks, err = strconv.Atoi(args[0]); err != nil || r.ReplicaAcks < 0 {
		return d.Errf("%q is not a number of replicas", args[0])
	}
	if len(args) == 2 {
		r.ReplicaAcksWait, err = directive.ParseDuration(d, args[1])
	}
	return err
}

func (r *Redis) readFence(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	if args[0] == "off" {
		r.FenceOff = true
		return nil
	}
	r.FenceWait, err = directive.ParseDuration(d, args[0])
	return err
}
