package reservation_test

import (
	"flag"
	"testing"

	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) {
	// what fails is told on the spot, with its seed
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "10s", "rapid.steps": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	stocktest.Main(m)
}
