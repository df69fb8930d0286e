package chaos

import (
	"reflect"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// A seed draws one schedule, another seed another one; faults of a lane do not overlap.
func TestSeedsDrawSchedules(t *testing.T) {
	for _, c := range Configs {
		drawn := map[string]bool{}
		for seed := range uint64(20) {
			s := Draw(seed, c, 12)
			if !reflect.DeepEqual(s, Draw(seed, c, 12)) {
				t.Fatalf("%s: seed %d draws two schedules", c.Name, seed)
			}
			if len(s) != 12 {
				t.Fatalf("%s: %d steps, want 12", c.Name, len(s))
			}
			var free [2]time.Duration
			for _, step := range s {
				if step.At < free[step.Lane] {
					t.Errorf("%s, seed %d: %v begins before the one before it in its lane ends", c.Name, seed, step)
				}
				free[step.Lane] = step.At + step.For
			}
			drawn[s.String()] = true
		}
		if len(drawn) != 20 {
			t.Errorf("%s: 20 seeds draw %d schedules", c.Name, len(drawn))
		}
	}
}

// Every fault of a configuration is one that the nemesis can do.
func TestEveryFaultExists(t *testing.T) {
	stores := map[string]store{"single": new(single), "replicas": new(replicated), "sentinel": new(watched), "cluster": new(cluster)}
	for _, c := range Configs {
		r := &Run{Config: c}
		for name, s := range stores {
			if len(c.Name) >= len(name) && c.Name[:len(name)] == name {
				r.store = s
			}
		}
		all := r.faults()
		for _, lane := range [][]string{c.faults, around(c)} {
			for _, name := range lane {
				if all[name] == nil {
					t.Errorf("configuration %s names the fault %q, which there is not", c.Name, name)
				}
			}
		}
		if unknown := r.unknown(Schedule{{Fault: "flood"}}); len(unknown) != 1 {
			t.Errorf("%s knows the fault flood", c.Name)
		}
	}
}

// Where nothing is promised of what a store forgets, that is counted. What no loss excuses is
// broken everywhere.
func TestClassesAreJudgedExactly(t *testing.T) {
	lost, forged := auditor.Violation{Promise: auditor.NoOversell}, auditor.Violation{Promise: auditor.ValidToken}
	torn := auditor.Violation{Promise: auditor.Balance}
	for _, c := range Configs {
		broken, counted := c.apart([]auditor.Violation{torn}, []auditor.Violation{lost, forged})
		wantBroken, wantCounted := 3, 0
		if c.Open != "" {
			wantBroken, wantCounted = 2, 1
		}
		if len(broken) != wantBroken || len(counted) != wantCounted {
			t.Errorf("%s: %v broken and %v counted", c.Name, broken, counted)
		}
		if c.Open != "" && c.Class != AtRisk {
			t.Errorf("%s has class %s and promises nothing", c.Name, c.Class)
		}
		if c.Open != "" && c.Short {
			t.Errorf("%s promises nothing, and CI runs it", c.Name)
		}
	}
}
