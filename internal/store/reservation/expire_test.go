package reservation_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// However many holds end in one call, Redis reads them together.
func TestExpireReadsInBulk(t *testing.T) {
	const holds = 80
	for _, mode := range []string{"backend", "response"} {
		t.Run(mode, func(t *testing.T) {
			s := servers(t)[0] // redis-server
			ops := []model.Operation{
				model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: holds}}}, model.SetStatus{Status: "open"},
			}
			for i := range holds {
				r := take(fmt.Sprint("r", i), 1)
				r.Mode, r.Guard, r.Ref = mode, fmt.Sprint("k|", i), fmt.Sprint("o", i)
				ops = append(ops, r)
			}
			s.fill(t, "s", ops)
			s.setTime(deadline)
			if err := s.client.ConfigResetStat(stocktest.Soon(t)).Err(); err != nil {
				t.Fatal(err)
			}
			_, replies, err := s.store.Call(stocktest.Soon(t), "s", reservation.Operation{Name: "expire", Args: []any{100}})
			if err != nil || replies[0][1] != int64(holds) {
				t.Fatal(replies, err)
			}
			if one, many := reads(t, s.client, "hget"), reads(t, s.client, "hmget", "zrangebyscore"); one != 0 || many == 0 || many > 8 {
				t.Errorf("to end %d holds redis read %d fields one by one, and %d times several", holds, one, many)
			}
			stocktest.Balanced(t, s.client, s.store, "s")
		})
	}
}

// reads is how often these commands ran since the statistics began.
func reads(t *testing.T, c *redis.Client, commands ...string) (n int) {
	t.Helper()
	info, err := c.InfoMap(stocktest.Soon(t), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		var ran int
		_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_"+command], "calls=%d", &ran)
		n += ran
	}
	return n
}
