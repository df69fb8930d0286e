package auditor_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// A store that has forgotten a reservation has its unit on sale again.
func TestLossesAreCounted(t *testing.T) {
	s := truth()
	s.entries = s.entries[:3] // only the first hold, which is not yet confirmed
	s.shard.Cells["7"] = "2 1 1 0 0"
	s.shard.Records = map[string]string{"r1": record("held")}
	s.shard.Deadlines, s.shard.Limits = []string{"r1"}, map[string]string{"buyer:sale:units|-|x": "1 1"}
	if found := s.judged(t); len(found) == 0 {
		t.Error("a lost order breaks no promise")
	}
	replayed, found := auditor.JudgeShards(s.History)
	if len(found) > 0 {
		t.Errorf("redis agrees with itself, and is said to break %v", found)
	}
	if got, want := auditor.CountLosses(s.History, replayed), (auditor.Losses{Orders: 1, Units: 1, Free: 1}); got != want {
		t.Errorf("lost are %+v, want %+v", got, want)
	}
	s.Ordered(&auditor.Order{JTI: "r3", Buyer: "dora", Sale: "s", Lines: []auditor.Line{{SKU: "7", Qty: 1}}, Proof: "ord-3", Taken: true, Answer: 201})
	if got, want := auditor.CountLosses(s.History, replayed), (auditor.Losses{Orders: 2, Units: 2, SoldTwice: 1, Free: 1}); got != want {
		t.Errorf("lost are %+v, want %+v", got, want)
	}
	s = truth()
	s.judged(t)
	replayed, _ = auditor.JudgeShards(s.History)
	if got := auditor.CountLosses(s.History, replayed); got != (auditor.Losses{}) {
		t.Errorf("nothing is lost, counted are %+v", got)
	}
}
