package movein

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// callFor bounds one call of the shop's Redis.
const callFor = 10 * time.Second

// Connect makes a client of a shop's Redis. It does not connect yet. The error does not repeat
// the address, which may have a password.
func Connect(address string) (*redis.Client, error) {
	o, err := redis.ParseURL(address)
	if err != nil || !strings.Contains(address, "://") {
		return nil, errors.New("it is no address of a Redis: write redis://user:password@host:6379/0, rediss:// for TLS, or unix:///path; percent-encode special characters of a password")
	}
	o.ReadTimeout, o.WriteTimeout = callFor, callFor
	o.PoolSize, o.DialerRetries = 2, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}
