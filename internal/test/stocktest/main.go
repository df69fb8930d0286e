package stocktest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Main runs the tests of a package, and fails when they leave a goroutine behind. Goroutines that
// end have a minute for it: goleak alone gives them half a second. Six tests that call t.Parallel run
// at a time: most of them wait for deadlines, not for the machine.
func Main(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "6")
	}
	code := m.Run()
	redistest.EndIdle()
	if code == 0 {
		// go-redis dials until it succeeds or a second after its client was closed
		dials := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
		err := goleak.Find(dials)
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
			err = goleak.Find(dials)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}
