package list_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
)

// filterBound is what the filter of the largest list may take.
const filterBound = 32 << 20

// phone is the i-th of many different phone numbers.
func phone(room []byte, i int) string {
	return string(strconv.AppendInt(append(room[:0], '1'), 3_000_000_000+int64(i), 10))
}

// TestLargeFile has every member refused and no other value.
func TestLargeFile(t *testing.T) {
	started := time.Now()
	path := filepath.Join(t.TempDir(), "list.txt")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	var room [16]byte
	for i := range large {
		w.WriteString("phone:")
		w.WriteString(phone(room[:], i))
		w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	before := heap()
	f := open(t, path, list.FileOptions{})
	read := time.Now()
	s := f.Stats()
	t.Logf("%d entries: written in %v, read in %v; filter %.1f MiB, entries %.1f MiB, heap %.1f MiB", s.Entries,
		written.Sub(started).Round(time.Millisecond), read.Sub(written).Round(time.Millisecond), mib(s.Filter), mib(s.Exact), mib(heap()-before))
	if s.Entries != large {
		t.Errorf("%d entries, want %d", s.Entries, large)
	}
	if s.Filter > filterBound || s.Exact > large*20 {
		t.Errorf("the filter takes %d bytes, the entries %d", s.Filter, s.Exact)
	}
	var lookups sync.WaitGroup
	for half := range 2 {
		lookups.Go(func() {
			var room [16]byte
			for i := half; i < large+others; i += 2 {
				yes, err := f.Has(context.Background(), list.Phone, phone(room[:], i))
				if yes != (i < large) || err != nil {
					t.Errorf("number %d of %d members: %v, %v", i, large, yes, err)
					return
				}
			}
		})
	}
	lookups.Wait()
	t.Logf("looked up in %v", time.Since(read).Round(time.Millisecond))
}

// TestLargeFilter measures a filter of the largest size: its memory, and how many
// lookups of others cost an exact answer.
func TestLargeFilter(t *testing.T) {
	k := newKeeper()
	m := list.NewHashed(k)
	m.Forms([]string{"any"})
	m.Begin(list.MaxEntries)
	m.Swap()
	if s := m.Stats(); s.Filter > filterBound {
		t.Fatalf("the filter takes %d bytes", s.Filter)
	}
	chunk := make([]list.Key, 1000)
	for i := 0; i < large; i += len(chunk) {
		for j := range chunk {
			chunk[j] = spread(uint64(i + j))
			chunk[j][0] = byte((i + j) * 256 / large) // one part of the filter after the other
		}
		m.Add(chunk)
	}
	var room [16]byte
	for i := range others {
		if holds(t, &m.List, list.Any, phone(room[:], i)) {
			t.Fatalf("other %d was found", i)
		}
	}
	rate := float64(k.asked.Load()) / others
	t.Logf("%d entries in a filter of %.1f MiB: %.6f of lookups are false positives", large, mib(m.Stats().Filter), rate)
	if rate > 2e-4 {
		t.Errorf("%f of lookups are false positives, want 0.0001", rate)
	}
}

// spread is a key that looks like a hash of i.
func spread(i uint64) (k list.Key) {
	for n := range 2 {
		i += 0x9e3779b97f4a7c15
		x := (i ^ i>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
		for j := range 8 {
			k[8*n+j] = byte(x >> (8 * j))
		}
	}
	return k
}

func heap() int {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// hashedOf makes a mirror with a filter of entries.
func hashedOf(t testing.TB, entries ...string) (*list.Hashed, *keeper) {
	k := newKeeper()
	m := list.NewHashed(k)
	m.Forms([]string{"any", "phone", "ip4/8", "ip6/32"})
	m.Begin(len(entries))
	for _, e := range entries {
		m.Fill([]list.Key{k.add(t, e)})
	}
	m.Swap()
	return m, k
}

// BenchmarkFile looks values up in a list of a million phones and a thousand
// prefixes of 17 lengths.
func BenchmarkFile(b *testing.B) {
	const entries = 1_000_000
	path := filepath.Join(b.TempDir(), "list.txt")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(out)
	var room [16]byte
	for i := range entries {
		fmt.Fprintf(w, "phone:%s\n", phone(room[:], i))
	}
	for i := range 1000 {
		fmt.Fprintf(w, "10.%d.%d.0/%d\n", i/256, i%256, 16+i%17)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	f := open(b, path, list.FileOptions{})
	values := make([]string, 1<<16)
	for _, c := range []struct {
		name, kind string
		value      func(i int) string
		want       bool
	}{
		{"text/no", list.Phone, func(i int) string { return phone(room[:], entries+i) }, false},
		{"text/yes", list.Phone, func(i int) string { return phone(room[:], i*15) }, true},
		{"address/no", list.IP, func(i int) string { return fmt.Sprintf("11.1.%d.%d", i/256, i%256) }, false},
		{"address/yes", list.IP, func(i int) string { return fmt.Sprintf("10.0.0.%d", i%256) }, true},
	} {
		for i := range values {
			values[i] = c.value(i)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if holds(b, &f.List, c.kind, values[i%len(values)]) != c.want {
					b.Fatal(c.name)
				}
			}
		})
	}
}

// BenchmarkHashed looks up who is not listed, in parallel, in a filter for ten
// million entries.
func BenchmarkHashed(b *testing.B) {
	m, _ := hashedOf(b, "phone:1")
	m.Begin(list.MaxEntries)
	m.Swap()
	values := make([]string, 1<<16)
	var room [16]byte
	for i := range values {
		values[i] = phone(room[:], i)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if holds(b, &m.List, list.Phone, values[i%len(values)]) {
				b.Error("found")
				return
			}
		}
	})
}
