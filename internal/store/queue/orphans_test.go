package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// failing lets calls of an operation fail before they come to Redis.
type failing struct {
	operation any          // as go-redis gets it
	left      atomic.Int32 // how many
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), f.operation) && f.left.Add(-1) >= 0 {
			return errors.New("a call fails")
		}
		return next(ctx, cmd)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Right after a failover calls time out. Holds whose orders are lost are released all the same, by the
// only edge that there is.
func TestOrphansAfterAFailure(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := stocktest.Selling(t, stocktest.Options(s), 10)
	fails := &failing{operation: &lua.Orphans.Name}
	fails.left.Store(2)
	shard.Redis(e.Store.Shard()).AddHook(fails)
	a := openWith(t, "A", e, one, shortly)
	a.line("r1", "lost")
	keys := a.Store.Shard().ShardKeys("s")
	if err := s.Client().Del(stocktest.Soon(t), keys[shard.LineKey:shard.QueueKey+1]...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Client().HSet(stocktest.Soon(t), keys[shard.MetaKey], "fenced", "2 1 1 0 0 0 1").Err(); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "the release of what is lost", func() bool { return a.state("lost") == record.Released })
	if fails.left.Load() >= 0 {
		t.Error("no call has failed: the test shows nothing")
	}
	a.confirm("r1")
	a.balanced(s, 0, 0)
}
