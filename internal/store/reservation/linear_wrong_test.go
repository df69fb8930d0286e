package reservation_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// What cannot have happened is found, and what can is not: without that, histories
// prove nothing.
func TestWrongHistoriesAreFound(t *testing.T) {
	confirm, release, lookup := model.Confirm{ID: "r1", Word: "shop"}, model.Release{ID: "r1", Word: "shop"}, model.Lookup{Guard: "k|1", Print: "p"}
	r1, r2, r3 := reserveLinear("r1"), reserveLinear("r2"), reserveLinear("r3")
	r2.Guard, r2.Ref, r2.Lines = "", "", r3.Lines
	held := model.Reply{"ok", "held", noon + 1000, noon + 900, noon, noon}
	found := func(state string) model.Reply {
		return model.Reply{"bound", "key", "r1", state, int64(1), noon, noon + 1000, noon + 900, noon, noon}
	}
	step := func(begin, end int64, op model.Operation, reply ...any) porcupine.Operation {
		o := porcupine.Operation{Call: begin, Return: end, Input: asked{ops: []model.Operation{op}}}
		if end == lost {
			o.Output = answered{}
		} else {
			o.Output = answered{replies: []model.Reply{reply}}
		}
		return o
	}
	tests := map[string]struct {
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"one after the other": {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 4, confirm, "ok", "confirmed"), step(5, 6, release, "conflict", "confirmed")}, porcupine.Ok},
		"at once, either way": {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 6, confirm, "conflict", "released"), step(4, 5, release, "ok", "released")}, porcupine.Ok},
		"both ends":           {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 6, confirm, "ok", "confirmed"), step(4, 5, release, "ok", "released")}, porcupine.Illegal},
		"no end":              {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 6, confirm, "conflict", "released"), step(4, 5, release, "conflict", "confirmed")}, porcupine.Illegal},
		"out of order":        {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 4, confirm, "conflict", "released"), step(5, 6, release, "ok", "released")}, porcupine.Illegal},
		"before it was made":  {[]porcupine.Operation{step(1, 2, confirm, "ok", "confirmed"), step(3, 4, r1, held...)}, porcupine.Illegal},
		"an old answer":       {[]porcupine.Operation{step(1, 2, r1, held...), step(3, 4, confirm, "ok", "confirmed"), step(5, 6, lookup, found("held")...)}, porcupine.Illegal},
		"seen while it goes on": {[]porcupine.Operation{
			step(1, 2, r1, held...), step(3, 8, confirm, "ok", "confirmed"), step(4, 5, lookup, found("held")...), step(6, 7, lookup, found("confirmed")...),
		}, porcupine.Ok},
		"seen and gone again": {[]porcupine.Operation{
			step(1, 2, r1, held...), step(3, 8, confirm, "ok", "confirmed"), step(4, 5, lookup, found("confirmed")...), step(6, 7, lookup, found("held")...),
		}, porcupine.Illegal},
		"the last units twice":      {[]porcupine.Operation{step(1, 3, r2, held...), step(2, 4, r3, held...)}, porcupine.Illegal},
		"one key, two reservations": {[]porcupine.Operation{step(1, 3, r1, held...), step(2, 4, reserveLinear("r2"), held...)}, porcupine.Illegal},
		"lost and done":             {[]porcupine.Operation{step(1, 2, r1, held...), step(3, lost, confirm), step(4, 5, release, "conflict", "confirmed")}, porcupine.Ok},
		"lost and not done":         {[]porcupine.Operation{step(1, 2, r1, held...), step(3, lost, confirm), step(4, 5, release, "ok", "released")}, porcupine.Ok},
		"lost, done and undone": {[]porcupine.Operation{
			step(1, 2, r1, held...), step(3, lost, confirm), step(4, 5, release, "conflict", "confirmed"), step(6, 7, release, "ok", "released"),
		}, porcupine.Illegal},
		"done before it was asked": {[]porcupine.Operation{
			step(1, 2, r1, held...), step(3, 4, release, "conflict", "confirmed"), step(5, lost, confirm),
		}, porcupine.Illegal},
		"returned beyond what was sold": {[]porcupine.Operation{
			step(1, 2, r1, held...), step(3, 4, confirm, "ok", "confirmed"),
			step(5, 8, model.Return{ID: "r1", Return: "x", Restock: true}, "ok", "a 1"), step(6, 7, model.Return{ID: "r1", Return: "y", Restock: true}, "ok", "a 1"),
		}, porcupine.Illegal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := porcupine.CheckOperationsTimeout(linear, test.history, time.Minute); got != test.want {
				t.Errorf("the history is %s, want %s", got, test.want)
			}
		})
	}
	t.Run("the bytes at the end", func(t *testing.T) {
		s := loaded()
		look := porcupine.Operation{Call: 1, Return: 2, Input: asked{}, Output: answered{all: stocktest.Expected(s, 0)}}
		if got := porcupine.CheckOperationsTimeout(linear, []porcupine.Operation{look}, time.Minute); got != porcupine.Ok {
			t.Errorf("what was loaded is %s", got)
		}
		r1.Run(s)
		look.Output = answered{all: stocktest.Expected(s, 0)}
		if got := porcupine.CheckOperationsTimeout(linear, []porcupine.Operation{look}, time.Minute); got != porcupine.Illegal {
			t.Errorf("a hold that no call made is %s", got)
		}
	})
}
