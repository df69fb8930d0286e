package movein

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// callFor bounds one call of the shop's Redis, poolSize the connections to one server.
const (
	callFor  = 10 * time.Second
	poolSize = 2
)

var (
	errAddress = errors.New("it is no address of a Redis: write redis://user:password@host:6379/0, rediss:// for TLS, or unix:///path; " +
		"redis+sentinel://host:26379/0?master_name=NAME&password=PASSWORD&addr=host2:26379 for one that sentinels watch; redis+cluster://host:6379?addr=host2:6379 for a cluster; " +
		"percent-encode special characters of a password")
	errNoMaster = errors.New("the sentinels watch a Redis by a name, and the address has none: add ?master_name=NAME")
	errDatabase = errors.New("a cluster has no databases: leave the number behind the host out")
)

// Connect makes a client of a shop's Redis: one server, the primary that sentinels watch, or a
// cluster. It does not connect yet. The error does not repeat the address, which may have a
// password.
//
// The schemes are redis://, rediss:// (TLS) and unix://, with the parameters of go-redis. With
// +sentinel the host and each addr are sentinels, user and password are theirs, master_name is the
// name by which they watch the primary, and username and password are the primary's. With
// +cluster the host and each addr are nodes.
func Connect(address string) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil, errAddress
	}
	base, kind, _ := strings.Cut(scheme, "+")
	address = base + "://" + rest
	switch kind {
	case "":
		return connectServer(address)
	case "sentinel":
		return connectSentinels(address)
	case "cluster":
		return connectCluster(address)
	}
	return nil, errAddress
}

func connectServer(address string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errAddress
	}
	o.ReadTimeout, o.WriteTimeout = callFor, callFor
	o.PoolSize, o.DialerRetries = poolSize, 1
	o.MaintNotificationsConfig = noNotifications()
	return redis.NewClient(o), nil
}

func connectSentinels(address string) (redis.UniversalClient, error) {
	at, err := url.Parse(address)
	if err != nil || at.Hostname() == "" {
		return nil, errAddress
	}
	o, err := redis.ParseFailoverURL(address)
	switch {
	case err != nil:
		return nil, errAddress
	case o.MasterName == "":
		return nil, errNoMaster
	}
	o.ReplicaOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica is behind
	o.ReadTimeout, o.WriteTimeout = callFor, callFor
	o.PoolSize, o.DialerRetries = poolSize, 1
	return redis.NewFailoverClient(o), nil
}

func connectCluster(address string) (redis.UniversalClient, error) {
	at, err := url.Parse(address)
	if err != nil || at.Hostname() == "" {
		return nil, errAddress
	}
	if at.Path != "" && at.Path != "/" {
		return nil, errDatabase
	}
	o, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, errAddress
	}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false // a replica is behind
	o.ReadTimeout, o.WriteTimeout = callFor, callFor
	o.PoolSize, o.DialerRetries = poolSize, 1
	o.MaintNotificationsConfig = noNotifications()
	return redis.NewClusterClient(o), nil
}

func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// servers returns a client of each server that has keys.
func servers(ctx context.Context, of redis.UniversalClient) ([]redis.Cmdable, error) {
	cluster, ok := of.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{of}, nil
	}
	var mu sync.Mutex
	var all []redis.Cmdable
	err := cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	})
	return all, err
}
