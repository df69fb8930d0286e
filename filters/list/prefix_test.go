package list_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/test/draw"
)

// TestPrefixes compares lists of random prefixes with looking at every entry.
func TestPrefixes(t *testing.T) {
	seed := draw.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range draw.Times(50, 500) {
		var text strings.Builder
		prefixes := make([]netip.Prefix, 1+random.IntN(20))
		for i := range prefixes {
			a := address(random)
			prefixes[i] = netip.PrefixFrom(a, random.IntN(a.BitLen()+1))
			fmt.Fprintln(&text, prefixes[i])
		}
		f := open(t, file(t, text.String()), list.FileOptions{})
		for range 200 {
			a := address(random)
			want := false
			for _, p := range prefixes {
				want = want || p.Contains(a)
			}
			if got := holds(t, &f.List, list.IP, a.String()); got != want {
				t.Fatalf("seed %d: %v in\n%s%v, want %v", seed, a, &text, got, want)
			}
			if want {
				found++
			}
		}
	}
	if found < 1000 || found > 19_000 {
		t.Errorf("seed %d: %d of 20,000 addresses were listed: that proves little", seed, found)
	}
}

// address is one of few enough that random prefixes contain it often.
func address(random *rand.Rand) netip.Addr {
	if random.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte{10, byte(random.IntN(4)), byte(random.IntN(4)) << 6, byte(random.IntN(4))})
	}
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for i := 4; i < 16; i++ {
		a[i] = byte(random.IntN(2)) << random.IntN(8)
	}
	return netip.AddrFrom16(a)
}
