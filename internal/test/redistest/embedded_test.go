package redistest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// What Stockgate uses works with go-redis on both backends and both protocols.
func TestGoRedisOnEach(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for _, protocol := range []int{2, 3} {
			t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
				c := redis.NewClient(&redis.Options{Addr: b.Addr(), Protocol: protocol, ClientName: "edge"})
				defer c.Close()
				ctx := soon(t)
				if name, err := c.ClientGetName(ctx).Result(); err != nil || name != "edge" {
					t.Errorf("the connection's name is %q (%v), want edge", name, err)
				}
				script := redis.NewScript(`return {redis.call('TIME')[1], redis.call('HINCRBY', KEYS[1], 'n', ARGV[1])}`)
				for i := range 2 { // the second time by its hash
					got, err := script.Run(ctx, c, []string{"h" + strconv.Itoa(protocol)}, 5).Slice()
					if err != nil || len(got) != 2 || got[1] != int64(5*(i+1)) {
						t.Fatalf("the script returns %v (%v)", got, err)
					}
				}
				if err := c.EvalSha(ctx, "0000000000000000000000000000000000000000", nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
					t.Errorf("an unknown script: %v, want NOSCRIPT", err)
				}
				sub := c.Subscribe(ctx, "notices")
				defer sub.Close()
				if _, err := sub.Receive(ctx); err != nil { // subscribed
					t.Fatal(err)
				}
				if err := c.Publish(ctx, "notices", "stock").Err(); err != nil {
					t.Fatal(err)
				}
				if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "stock" {
					t.Errorf("received %v (%v)", m, err)
				}
			})
		}
	})
}

func TestEachRunsBoth(t *testing.T) {
	var real, embedded int
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		switch b.(type) {
		case *redistest.Server:
			real++
		case *redistest.EmbeddedServer:
			embedded++
		}
		if err := b.Client().Ping(soon(t)).Err(); err != nil {
			t.Error(err)
		}
	})
	if real != 1 || embedded != 1 {
		t.Errorf("ran %d times on redis-server and %d times embedded, want once each", real, embedded)
	}
}

func TestSetTime(t *testing.T) {
	e := redistest.Embedded(t)
	c, ctx := e.Client(), soon(t)
	for _, want := range []time.Time{
		time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 10, 23, 59, 59, 0, time.UTC), // backwards too
	} {
		e.SetTime(want)
		if got, err := c.Time(ctx).Result(); err != nil || !got.Equal(want) {
			t.Errorf("TIME is %v (%v), want %v", got, err, want)
		}
		got, err := c.Eval(ctx, "return redis.call('TIME')[1]", nil).Text()
		if err != nil || got != strconv.FormatInt(want.Unix(), 10) {
			t.Errorf("TIME in a script is %s (%v), want %d", got, err, want.Unix())
		}
	}
}

func TestEmbeddedCloses(t *testing.T) {
	e := redistest.Embedded(t)
	c := e.Client()
	e.Close()
	e.Close()
	if err := c.Ping(soon(t)).Err(); err == nil {
		t.Error("a closed server answers")
	}
}
