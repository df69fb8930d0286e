package sale_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// what fails is told on the spot, with its seed
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
