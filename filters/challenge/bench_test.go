package challenge_test

import (
	"testing"

	"github.com/stockgate/stockgate/filters/challenge"
)

// costs are what is done for an attempt.
func costs(t testing.TB) map[string]func() {
	c := asking(easy)
	good := solve(t, taskOf(noon, keys[0], ann, 6))
	forged := solve(t, "1.29906640.6.AAAAAAAAAAAAAAAAAAAAAA")
	room := make([]byte, 0, 64)
	return map[string]func(){
		"none":    func() { c.Foresee(noon, keys, ann, "") },
		"good":    func() { c.Foresee(noon, keys, ann, good) },
		"replay":  func() { c.Judge(noon, keys, ann, good) },
		"forged":  func() { c.Foresee(noon, keys, ann, forged) },
		"garbage": func() { c.Foresee(noon, keys, ann, "1.29906640.6.AAAAAAAAAAAAAAAAAAAAA!.1.2.3.4") },
		"task":    func() { room = challenge.AppendTask(room[:0], noon, &keys[0], ann, 6) },
	}
}

func TestJudgingDoesNotAllocate(t *testing.T) {
	for name, do := range costs(t) {
		if n := testing.AllocsPerRun(200, do); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for name, do := range costs(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}
