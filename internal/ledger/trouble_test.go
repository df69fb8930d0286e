package ledger_test

import (
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
)

// An error is logged once, and another one later; movements that the ledger lacks are logged at once, and once.
func TestTroubleOfALedgerThatLacksMovements(t *testing.T) {
	var trouble ledger.Trouble
	gap := &ledger.PositionError{Sale: "s", Have: ledger.Position{Epoch: 1, Seq: 5}, Want: ledger.Position{Epoch: 1, Seq: 9}}
	more := &ledger.PositionError{Sale: "s", Have: ledger.Position{Epoch: 1, Seq: 5}, Want: ledger.Position{Epoch: 1, Seq: 10}}
	for i, step := range []struct {
		err          error
		wrong, right bool
	}{
		{errors.New("the database is away"), true, false}, {errors.New("another error"), false, false}, {gap, true, false}, {gap, false, false},
		{more, false, false}, {nil, false, true}, {gap, true, false},
	} {
		if wrong, right := trouble.Note(step.err); wrong != step.wrong || right != step.right {
			t.Errorf("step %d: %v, %v", i, wrong, right)
		}
	}
}
