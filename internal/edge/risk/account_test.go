package risk_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge/risk"
)

// Whatever comes first, the reply to a reserve request or the journal, a unit counts once,
// from the first of the two until it is safe.
func TestEveryUnitCountsOnce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		a := risk.NewAccount()
		a.Began("e", 0)
		type movement struct{ seq, units int64 }
		var own []movement // sold by this edge, and not heard of yet
		units := map[int64]int64{}
		seen := map[int64]bool{}
		last, read, safe := int64(0), int64(0), int64(0)
		for range 200 {
			switch r.IntN(5) {
			case 0, 1: // this edge sells, or another one
				last++
				units[last] = 1 + r.Int64N(3)
				if r.IntN(2) == 0 {
					own = append(own, movement{last, units[last]})
				}
			case 2: // the reply comes
				if len(own) > 0 {
					a.Sold(own[0].seq, own[0].units)
					seen[own[0].seq] = true
					own = own[1:]
				}
			case 3: // an entry of the journal is read
				if read < last {
					read++
					a.ReadTo(read, units[read])
					seen[read] = true
				}
			case 4:
				if last > 0 {
					safe = max(safe, r.Int64N(last+1))
					a.Prove("e", safe)
				}
			}
			want := int64(0)
			for seq := range seen {
				if seq > safe {
					want += units[seq]
				}
			}
			if got := a.Units(); got != want {
				t.Fatalf("seed %d: %d units are at risk, want %d", seed, got, want)
			}
		}
	}
}

// Many lots become few, and none of their units is safe too early.
func TestManyLots(t *testing.T) {
	a := risk.NewAccount()
	a.Began("e", 0)
	const n = 10 * risk.MaxLots
	for seq := int64(1); seq <= n; seq++ {
		a.ReadTo(seq, 1)
	}
	if a.Lots() > risk.MaxLots || a.Units() != n {
		t.Errorf("%d lots have %d units, want %d", a.Lots(), a.Units(), n)
	}
	for seq := int64(0); seq <= n; seq += 1000 {
		if a.Prove("e", seq); a.Units() < n-seq {
			t.Fatalf("at %d only %d units are at risk, want at least %d", seq, a.Units(), n-seq)
		}
	}
	if a.Prove("e", n); a.Units() != 0 {
		t.Errorf("%d units are left", a.Units())
	}
}

// What this edge has not read is not known to be safe. After another server has taken over,
// what it lacks is lost, and no longer at risk.
func TestWhatWasNotRead(t *testing.T) {
	bound := risk.Bound{Units: 10}
	a := risk.NewAccount()
	room := func(want int64) {
		t.Helper()
		if got := a.Room(bound, time.Second); got != want {
			t.Errorf("there is room for %d units, want %d", got, want)
		}
	}
	room(0) // nothing is known
	a.Began("e", 7)
	room(0)
	a.Prove("e", 6)
	room(0)
	a.Prove("e", 7)
	room(10)
	a.ReadTo(8, 3)
	a.Sold(9, 2)
	room(5)
	a.Prove("e", 5) // an older proof
	room(5)
	a.Began("e", 8) // the replica has not got what this edge sold
	if room(0); a.Units() != 5 {
		t.Errorf("%d units are at risk", a.Units())
	}
	a.Prove("e", 8)
	room(8)
	a.BeganLater("e", 8) // nor has it come since
	room(10)
	a.Sold(9, 3) // the same with a journal that goes on where this edge was
	room(7)
	a.Lost(9)
	room(7)
	a.Lost(8)
	room(10)
	a.ReadTo(10, 4)
	a.Began("e", 9)
	a.Prove("e", 9)
	room(10)
	a.ReadTo(11, 4)
	a.Began("f", 2) // another life
	a.Prove("f", 2)
	room(10)
	a.Sold(3, 1)
	a.Prove("g", 1) // another one, of which this edge has not read
	room(10)
}

// What a heartbeat says that was sent before the sale was deleted and loaded again counts no more.
func TestOldHeartbeat(t *testing.T) {
	a := risk.NewAccount()
	a.BeganLater("2", 0)
	a.Prove("1", 1000)
	a.Gone()
	a.ReadTo(5, 3)
	if n := a.Units(); n != 3 {
		t.Errorf("%d units are at risk, want 3", n)
	}
}

func TestAgeBound(t *testing.T) {
	bound := risk.Bound{Age: time.Second}
	a := risk.NewAccount()
	a.Began("e", 1)
	if a.Room(bound, time.Second) != 0 {
		t.Error("there is room, and nothing is known")
	}
	a.Prove("e", 1)
	a.ReadTo(2, 1_000) // after a second, see Account
	if a.Room(bound, 2*time.Second) < 1_000_000 {
		t.Error("there is no room after a second")
	}
	if a.Room(bound, 2*time.Second+1) != 0 {
		t.Error("there is room after more than a second")
	}
	a.Prove("e", 2)
	if a.Room(bound, time.Hour) < 1_000_000 {
		t.Error("there is no room although all is safe")
	}
}

func TestBounds(t *testing.T) {
	for text, want := range map[string]risk.Bound{"any": {}, "1": {Units: 1}, "50": {Units: 50}, "1s": {Age: time.Second}, "300ms": {Age: 300 * time.Millisecond}} {
		if b, err := risk.ParseBound(text); err != nil || b != want || b.String() != text || b.Any() != (text == "any") {
			t.Errorf("%s is %+v, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "some", "100ms", "2h", "5 units", "1.5"} {
		if b, err := risk.ParseBound(text); err == nil {
			t.Errorf("%q is %+v", text, b)
		}
	}
}

// A replica that has left counts for ten minutes more; another server counts its own.
func TestReplicasThatCount(t *testing.T) {
	info := func(id, after string, slaves ...string) map[string]string {
		out := map[string]string{"role": "master", "master_replid": id, "after": after, "slave_expires_tracked_keys": "state=online"}
		out["connected_slaves"] = strconv.Itoa(len(slaves))
		for i, s := range slaves {
			out["slave"+strconv.Itoa(i)] = "ip=10.0.0.1,port=6379,state=" + s
		}
		return out
	}
	most, err := risk.Replicas(
		info("a", "1s"), info("a", "1s", "online"), info("a", "1s", "online", "wait_bgsave"), info("a", "1s", "online", "online"),
		info("a", "1s", "online"), info("a", "9m"), info("a", "61s", "online"), info("b", "1s"), info("b", "1s", "online", "online"))
	want := []int{0, 1, 1, 2, 2, 2, 1, 0, 2}
	if err != nil || len(most) != len(want) {
		t.Fatal(most, err)
	}
	for i := range want {
		if most[i] != want[i] {
			t.Errorf("%v must have it, want %v", most, want)
			break
		}
	}
	if _, err := risk.Replicas(map[string]string{"role": "slave", "after": "1s"}); err == nil {
		t.Error("a replica counts its replicas")
	}
}
