package reservation_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// BenchmarkScripts measures a reserve and its confirm, each a call of its own, with a limit
// and an idempotency key that lasts for an hour. us/script is the time of the script by
// Redis's own count.
func BenchmarkScripts(b *testing.B) {
	b.Run("redis-server", func(b *testing.B) { benchmarkScripts(b, redistest.Start(b)) })
	b.Run("embedded", func(b *testing.B) { benchmarkScripts(b, redistest.Embedded(b)) })
}

func benchmarkScripts(b *testing.B, server redistest.Backend) {
	store := stocktest.OpenStore(b, stocktest.Options(server))
	stocktest.Load(b, store, stocktest.OpenSale("s", 100_000_000))
	call := func(op model.Operation) {
		_, replies, err := store.Call(stocktest.Soon(b), "s", wire(op))
		if err != nil || replies[0][0] != "ok" {
			b.Fatalf("%+v answers %v, error %v", op, replies, err)
		}
	}
	var reserved, confirmed int
	reserve := func() {
		r := take(fmt.Sprint("r", reserved), 1)
		r.HoldFor, r.KeyTTL = 30_000, 3_600_000
		r.Guard, r.Print = fmt.Sprintf("k|%032d", reserved), "print"
		call(r)
		reserved++
	}
	client := server.Client()
	b.Run("reserve", func(b *testing.B) {
		before := scriptTime(b, client)
		for b.Loop() {
			reserve()
		}
		b.ReportMetric((scriptTime(b, client)-before)/float64(b.N), "us/script")
	})
	b.Run("confirm", func(b *testing.B) {
		for reserved < confirmed+b.N {
			reserve()
		}
		b.ResetTimer()
		before := scriptTime(b, client)
		for range b.N {
			call(model.Confirm{ID: fmt.Sprint("r", confirmed), Word: "shop"})
			confirmed++
		}
		b.ReportMetric((scriptTime(b, client)-before)/float64(b.N), "us/script")
	})
}

// scriptTime is how long scripts have run, in µs; 0: the server does not count it.
func scriptTime(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	stats, _ := client.Info(stocktest.Soon(b), "commandstats").Result()
	found := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	us, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return us
}
