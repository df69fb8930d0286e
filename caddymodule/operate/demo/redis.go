package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// pingTimeout bounds how long a Redis may take to answer.
const pingTimeout = 10 * time.Second

// reachRedis checks that the Redis answers, and arranges that the keys of this run are removed
// at the end.
func (d *demo) reachRedis(ctx context.Context) error {
	if d.Redis == "" {
		return nil
	}
	options := &redis.Options{Addr: d.Redis}
	if strings.Contains(d.Redis, "://") {
		var err error
		if options, err = redis.ParseURL(d.Redis); err != nil {
			return OptionError{errors.New("--redis: the URL cannot be read")} // it may hold a password
		}
	}
	options.MaxRetries, options.DialerRetries = -1, 1
	logging.Disable() // the demo reports what it would log
	client := redis.NewClient(options)
	d.atEnd(func(context.Context) error { return client.Close() })
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := client.Ping(pinging).Err(); err != nil {
		return NoAnswerError{fmt.Errorf("no redis at %s: %w", hidePassword(d.Redis), err)}
	}
	d.prefix = "stockgate-demo-" + strings.ToLower(rand.Text()[:10])
	d.atEnd(func(ctx context.Context) error { return removeKeys(ctx, client, d.prefix) })
	return nil
}

// removeKeys removes all keys of a prefix. It deletes instead of unlinking them, so that later
// commands do not see them.
func removeKeys(ctx context.Context, client *redis.Client, prefix string) error {
	keys := client.Scan(ctx, 0, prefix+":*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("removing the keys %s:* from redis: %w", prefix, err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("removing the keys %s:* from redis: %w", prefix, err)
	}
	return nil
}

// hidePassword returns the address without its password.
func hidePassword(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Redacted()
	}
	return address
}
