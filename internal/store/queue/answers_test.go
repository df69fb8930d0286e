package queue_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The answers of a sale take so many bytes at most: the oldest make room for a new one. An answer that is
// kept again counts once.
func TestAnswersAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		keys := a.Store.Shard().QueueAnswersKeys("s", "")
		const most = 10_000
		keep := func(id string, bytesOf int, keep time.Duration) (int64, error) {
			return a.queue.KeepAnswer(stocktest.Soon(t), "s", id, &queue.Answer{Status: 201, Body: bytes.Repeat([]byte("x"), bytesOf)}, keep, most)
		}
		kept := func(id string) bool {
			got, err := a.queue.Answer(stocktest.Soon(t), "s", id)
			if err != nil {
				t.Fatal(err)
			}
			return got != nil
		}
		size := func() (sum, all int64) {
			sum, err := b.Client().Get(stocktest.Soon(t), keys[2]).Int64()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				n, err := b.Client().StrLen(stocktest.Soon(t), a.Store.Shard().QueueAnswerKey("s", fmt.Sprint("r", i))).Result()
				if err != nil {
					t.Fatal(err)
				}
				all += n
			}
			return sum, all
		}
		for i := range 3 {
			if n, err := keep(fmt.Sprint("r", i), 2000, time.Hour); n != 0 || err != nil {
				t.Fatalf("r%d: %d had to go, %v", i, n, err)
			}
		}
		if n, err := keep("r0", 2100, time.Hour); n != 0 || err != nil || !kept("r0") || !kept("r1") { // 2,000 bytes are 2,700 in base64
			t.Errorf("the same once more: %d had to go, %v", n, err)
		}
		if sum, all := size(); sum != all || sum == 0 || sum > most {
			t.Errorf("%d bytes are counted, and there are %d", sum, all)
		}
		if n, err := keep("r3", 2000, time.Hour); n != 1 || err != nil {
			t.Errorf("%d had to go, %v; want the oldest", n, err)
		}
		if kept("r1") || !kept("r2") || !kept("r0") || !kept("r3") {
			t.Error("another one than the oldest made room")
		}
		if n, err := keep("r4", 10_000, time.Hour); n != 0 || !errors.Is(err, queue.ErrAnswerTooLarge) || kept("r4") {
			t.Errorf("one that is too large: %d had to go, %v", n, err)
		}
		if sum, all := size(); sum != all || sum > most {
			t.Errorf("%d bytes are counted, and there are %d", sum, all)
		}
		// what is over goes first, and did not have to make room
		if _, err := keep("r5", 10, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys[1:3] {
			if left, err := b.Client().PTTL(stocktest.Soon(t), key).Result(); err != nil || left < time.Minute {
				t.Errorf("%s is there for another %v, and there are answers for an hour: %v", key, left, err)
			}
		}
		stocktest.Eventually(t, "an answer that is over", func() bool {
			n, err := keep("r6", 10, time.Hour)
			if n != 0 || err != nil {
				t.Fatalf("%d had to go, %v", n, err)
			}
			return !kept("r5")
		})
		if n, err := keep("r6", 10, time.Hour); n != 0 || err != nil { // the one before may have been too early for it
			t.Errorf("%d had to go, %v", n, err)
		}
		if sum, all := size(); sum != all {
			t.Errorf("%d bytes are counted, and there are %d", sum, all)
		}
	})
}

// An answer that is dropped on demand is counted no more, and others stay.
func TestDropAnswer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		a := quiet(t, "A", stocktest.Selling(t, stocktest.Options(b), 10), one)
		keys := a.Store.Shard().QueueAnswersKeys("s", "")
		const most = 10_000
		for _, id := range []string{"r0", "r1"} {
			if _, err := a.queue.KeepAnswer(stocktest.Soon(t), "s", id, &queue.Answer{Status: 201, Body: []byte(id)}, time.Hour, most); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"r0", "r0", "never"} {
			if err := queue.DropAnswer(stocktest.Soon(t), a.Store, "s", id); err != nil {
				t.Fatal(err)
			}
		}
		gone, err := a.queue.Answer(stocktest.Soon(t), "s", "r0")
		if gone != nil || err != nil {
			t.Errorf("r0 is still there: %+v %v", gone, err)
		}
		left, err := a.queue.Answer(stocktest.Soon(t), "s", "r1")
		if err != nil || left == nil || string(left.Body) != "r1" {
			t.Fatalf("r1 is %+v %v", left, err)
		}
		sum, err := b.Client().Get(stocktest.Soon(t), keys[2]).Int64()
		if long, _ := b.Client().StrLen(stocktest.Soon(t), a.Store.Shard().QueueAnswerKey("s", "r1")).Result(); err != nil || sum != long {
			t.Errorf("%d bytes are counted, r1 has %d: %v", sum, long, err)
		}
		if n, err := b.Client().ZCard(stocktest.Soon(t), keys[1]).Result(); n != 1 || err != nil {
			t.Errorf("%d answers are listed: %v", n, err)
		}
		if ttl, err := b.Client().PTTL(stocktest.Soon(t), keys[2]).Result(); ttl <= 0 || err != nil {
			t.Errorf("the count stays for %s: %v", ttl, err)
		}
	})
}
