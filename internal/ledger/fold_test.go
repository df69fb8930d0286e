package ledger_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// A journal with any kind of movement can be drained.
func TestEveryKindIsFolded(t *testing.T) {
	for _, kind := range journal.MovementKinds() {
		m := journal.Movement{Seq: 1, Kind: kind, ID: "r", Record: &record.Record{State: record.Held}}
		if _, err := ledger.Fold([]journal.Movement{m}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
