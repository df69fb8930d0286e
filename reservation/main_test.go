package reservation_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// what fails is told on the spot, with its seed
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "10s", "rapid.steps": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	// go-redis dials until it succeeds or a second after its client was closed
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
