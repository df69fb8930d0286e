package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
)

// Each fault of a store is one finding that is not ok.
func TestDoctorJudgesStore(t *testing.T) {
	const giB = 1 << 30
	well := edgeruntime.StoreStatus{Dir: "/s", Version: "redis 7.0.15", PID: 7, Up: true, Files: 3 << 20, Free: 100 * giB, Pace: -1}
	for name, test := range map[string]struct {
		change func(*edgeruntime.StoreStatus)
		want   string
		says   string // also, in a line that is ok
	}{
		"well":       {func(*edgeruntime.StoreStatus) {}, "", "for how long is not known yet"},
		"idle":       {func(s *edgeruntime.StoreStatus) { s.Pace = 0 }, "", "and the files do not grow at present"},
		"grows":      {func(s *edgeruntime.StoreStatus) { s.Pace = 10_000 }, "", "for 2,982 hours at the present pace"},
		"grows fast": {func(s *edgeruntime.StoreStatus) { s.Pace = 10_000_000 }, "warning disk 100 GiB left on the disk of /s, for 3.0 hours at the present pace: when it is full nothing is sold; make room", ""},
		"hardly":     {func(s *edgeruntime.StoreStatus) { s.Pace = 0.001 }, "", "for more than 10 years"},
		"nearly":     {func(s *edgeruntime.StoreStatus) { s.Free = giB - 1 }, "warning disk", "the files of the store have 3.0 MiB"},
		"down":       {func(s *edgeruntime.StoreStatus) { s.PID, s.Why = 0, "exit status 1" }, "error store the redis-server of /s does not run, and Caddy tries again: exit status 1", ""},
		"restarted":  {func(s *edgeruntime.StoreStatus) { s.Restarts, s.Why = 2, "signal: killed" }, "warning store redis 7.0.15 runs as process 7 in /s, and has ended 2 times since Caddy started, the last time with: signal: killed", ""},
		"cut":        {func(s *edgeruntime.StoreStatus) { s.Cut = 1234 }, "warning store 1,234 bytes at the end of the append-only file", "runs as process 7"},
		"rewriting":  {func(s *edgeruntime.StoreStatus) { s.Rewriting = true }, "", "is being rewritten"},
	} {
		s := well
		test.change(&s)
		said := doctor.JudgeStore(s)
		wantOneFinding(t, name, said, test.want)
		if !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "ok ") && strings.Contains(line, test.says) }) {
			t.Errorf("%s: %q does not say %q", name, said, test.says)
		}
	}
}
