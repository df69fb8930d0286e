package shard_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// saidByRedis is an error that Redis answers.
type saidByRedis string

func (s saidByRedis) Error() string { return string(s) }
func (saidByRedis) RedisError()     {}

// A node of a cluster that is asked as a single server names what to configure, and nothing was sent.
func TestNodeOfACluster(t *testing.T) {
	for _, said := range []saidByRedis{"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381"} {
		err := shard.Explain(said)
		if !errors.Is(err, shard.ErrUnavailable) || !strings.Contains(err.Error(), "write `cluster`") {
			t.Errorf("%q is explained as %v", said, err)
		}
		if c := new(shard.Client); !c.NotSent(err) {
			t.Errorf("%q counts as sent", said)
		}
	}
}
