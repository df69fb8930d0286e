package challenge_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/challenge"
)

// noon is when the tests begin: their clock moves only as they say.
var noon = time.Date(2026, 11, 11, 12, 0, 30, 0, time.UTC)

var keys = []challenge.TaskKey{challenge.NewKey(sha256.Sum256([]byte("one")))}

var ann = challenge.TaskScope{Gate: "order", Sale: "double11", Address: "192.0.2.7"}

// easy is asked for from the second attempt of a minute on.
var easy = challenge.Policy{Above: 1, Window: time.Minute, Least: 6, Most: 6}

// asking is a challenger whose next attempts need a solution.
func asking(r challenge.Policy) *challenge.Challenger {
	c := challenge.New(r)
	for range r.Above {
		c.Count(noon)
	}
	return c
}

func taskOf(now time.Time, key challenge.TaskKey, s challenge.TaskScope, bits int) string {
	return string(challenge.AppendTask(nil, now, &key, s, bits))
}

func solve(t testing.TB, task string) string {
	t.Helper()
	solved, err := challenge.Solve(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	return solved
}

// The format is public: other solvers depend on each byte of it.
func TestFormat(t *testing.T) {
	const want = "1.29906640.6.my3teqoPEzIOwrFRd2GHQA"
	if got := taskOf(noon, keys[0], ann, 6); got != want {
		t.Errorf("the task is %s, want %s", got, want)
	}
	solved := solve(t, want)
	parts := strings.Split(strings.TrimPrefix(solved, want+"."), ".")
	if !strings.HasPrefix(solved, want+".") || len(parts) != 4 {
		t.Fatalf("the solution is %s", solved)
	}
	hash := sha256.Sum256([]byte(want))
	for _, nonce := range parts {
		if hash = sha256.Sum256(append(hash[:], nonce...)); hash[0]>>4 != 0 {
			t.Errorf("after %s the hash is %x", nonce, hash)
		}
	}
}

// What is bound is bound, each part by itself.
func TestSolutionsAreBound(t *testing.T) {
	other := challenge.NewKey(sha256.Sum256([]byte("two")))
	solved := solve(t, taskOf(noon, keys[0], ann, 6))
	six := challenge.TaskScope{Address: "2001:db8:1:2:3:4:5:6"}
	ofSix := solve(t, taskOf(noon, keys[0], six, 6))
	minute := time.Minute
	for name, c := range map[string]struct {
		after    time.Duration
		keys     []challenge.TaskKey
		scope    challenge.TaskScope
		solution string
		passes   bool
	}{
		"as it is":               {0, keys, ann, solved, true},
		"none":                   {0, keys, ann, "", false},
		"the task alone":         {0, keys, ann, solved[:strings.LastIndexByte(solved, '.')], false},
		"another gate":           {0, keys, challenge.TaskScope{Gate: "check", Sale: ann.Sale, Address: ann.Address}, solved, false},
		"another sale":           {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: "double12", Address: ann.Address}, solved, false},
		"another address":        {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "192.0.2.8"}, solved, false},
		"parts moved":            {0, keys, challenge.TaskScope{Gate: ann.Gate + "d", Sale: ann.Sale[1:], Address: ann.Address}, solved, false},
		"the address in IPv6":    {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "::ffff:192.0.2.7"}, solved, true},
		"behind a NAT64":         {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "64:ff9b::192.0.2.7"}, solved, true},
		"behind a local NAT64":   {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "64:ff9b:1::192.0.2.7"}, solved, true},
		"translated to IPv6":     {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "::ffff:0:192.0.2.7"}, solved, true},
		"another of that NAT64":  {0, keys, challenge.TaskScope{Gate: ann.Gate, Sale: ann.Sale, Address: "64:ff9b::192.0.2.8"}, solved, false},
		"the same /64":           {0, keys, challenge.TaskScope{Address: "2001:db8:1:2:ffff::1"}, ofSix, true},
		"another /64":            {0, keys, challenge.TaskScope{Address: "2001:db8:1:3::1"}, ofSix, false},
		"the next minute":        {minute, keys, ann, solved, true},
		"the minute after that":  {2 * minute, keys, ann, solved, false},
		"a clock that is behind": {-minute, keys, ann, solved, true},
		"one that is far behind": {-2 * minute, keys, ann, solved, false},
		"another key":            {0, []challenge.TaskKey{other}, ann, solved, false},
		"the older of two keys":  {0, []challenge.TaskKey{other, keys[0]}, ann, solved, true},
		"fewer bits claimed":     {0, keys, ann, strings.Replace(solved, ".6.", ".4.", 1), false},
		"more bits claimed":      {0, keys, ann, strings.Replace(solved, ".6.", ".7.", 1), false},
		"another minute claimed": {0, keys, ann, strings.Replace(solved, "1.29906640.", "1.29906641.", 1), false},
		"a seed of its own":      {0, keys, ann, solve(t, "1.29906640.6.AAAAAAAAAAAAAAAAAAAAAA"), false},
	} {
		challenger := challenge.New(easy)
		challenger.Count(noon.Add(c.after))
		foreseen := challenger.Foresee(noon.Add(c.after), c.keys, c.scope, c.solution)
		got := challenger.Judge(noon.Add(c.after), c.keys, c.scope, c.solution)
		if (got == 0) != c.passes || got != foreseen {
			t.Errorf("%s: asked for %d bits, foreseen %d, want it to pass: %t", name, got, foreseen, c.passes)
		}
	}
}

func TestHardnessFollowsTheRate(t *testing.T) {
	c := challenge.New(challenge.Policy{Above: 100, Window: time.Second, Least: 8, Most: 12})
	at, n := time.Duration(0), 0
	for _, step := range []struct {
		at       time.Duration
		attempts int // up to here, in this window
		want     int // bits of the last one
	}{
		{0, 100, 0}, {0, 101, 8}, {0, 200, 8}, {0, 201, 9}, {0, 400, 9}, {0, 401, 10}, {0, 800, 10}, {0, 801, 11}, {0, 1600, 11}, {0, 1601, 12}, {0, 9000, 12},
		{time.Second, 1, 12},       // the window before counts
		{2 * time.Second, 1, 0},    // it was quiet
		{2 * time.Second, 150, 8},  // and rises again
		{3 * time.Second, 1, 8},    // 150 in the window before
		{3 * time.Second, 90, 8},   // and not those of both together
		{4 * time.Second, 1, 0},    // 90 are below
		{10 * time.Second, 101, 8}, // windows without any
		{12 * time.Second, 1, 0},
		{11 * time.Second, 101, 8}, // a clock that is behind by a window counts in this one
		{5 * time.Second, 1, 0},    // one that was set back starts over
	} {
		if step.at != at {
			at, n = step.at, 0
			if step.at == 11*time.Second {
				n = 1
			}
		}
		bits := 0
		for ; n < step.attempts; n++ {
			foreseen := c.Foresee(noon.Add(at), keys, ann, "")
			if bits = c.Judge(noon.Add(at), keys, ann, ""); bits != foreseen {
				t.Fatalf("%v, attempt %d: %d bits, foreseen %d", step.at, n+1, bits, foreseen)
			}
		}
		if bits != step.want {
			t.Errorf("%v, attempt %d: %d bits, want %d", step.at, n, bits, step.want)
		}
	}
}

// One attempt that is late, or a processor whose clock is behind, does not end a rush. A clock
// that is set back does, at once or when it has caught up.
func TestLateAttemptsDoNotResetTheMeter(t *testing.T) {
	const window = 100 * time.Millisecond
	rules := challenge.Policy{Above: 200, Window: window, Least: 12, Most: 16}
	for _, late := range []time.Duration{window, 2 * window, 250 * time.Millisecond, time.Second, 2 * time.Second} {
		c := challenge.New(rules)
		for range 5_000 {
			c.Judge(noon, keys, ann, "")
		}
		if foreseen := c.Foresee(noon.Add(-late), keys, ann, ""); foreseen != 16 {
			t.Errorf("an attempt %v late: %d bits foreseen, want 16", late, foreseen)
		}
		c.Count(noon.Add(-late))
		if foreseen, bits := c.Foresee(noon, keys, ann, ""), c.Judge(noon, keys, ann, ""); bits != 16 || foreseen != bits {
			t.Errorf("after an attempt %v late: %d bits, foreseen %d, want 16", late, bits, foreseen)
		}
		if bits := c.Judge(noon.Add(2*window), keys, ann, ""); bits != 0 {
			t.Errorf("after an attempt %v late, and a quiet window: %d bits", late, bits)
		}
	}
	c := challenge.New(rules)
	for range 5_000 {
		c.Judge(noon, keys, ann, "")
	}
	if foreseen, bits := c.Foresee(noon.Add(-time.Hour), keys, ann, ""), c.Judge(noon.Add(-time.Hour), keys, ann, ""); bits != 0 || foreseen != 0 {
		t.Errorf("a clock that was set back by an hour: %d bits, foreseen %d", bits, foreseen)
	}
}

// Attempts on all processors are counted once each.
func TestAttemptsAreCountedTogether(t *testing.T) {
	const attempts, workers = 4000, 8
	c := challenge.New(challenge.Policy{Above: attempts, Window: time.Second, Least: 8, Most: 12})
	var asked atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range attempts / workers {
				if c.Judge(noon, keys, ann, "") != 0 {
					asked.Add(1)
				}
			}
		})
	}
	group.Wait()
	if asked.Load() != 0 || c.Judge(noon, keys, ann, "") != 8 {
		t.Errorf("%d of the first %d were asked, and then not the next one", asked.Load(), attempts)
	}
}

// A solution serves one attempt, in its minute and the next, whichever attempt is quicker.
func TestSolutionsServeOnce(t *testing.T) {
	c := asking(easy)
	task := taskOf(noon, keys[0], ann, 6)
	first, second := solve(t, task), solve(t, task)
	for first == second { // they begin at random
		second = solve(t, task)
	}
	var passed atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if c.Judge(noon, keys, ann, first) == 0 {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if passed.Load() != 1 {
		t.Errorf("one solution passed %d times", passed.Load())
	}
	later := noon.Add(time.Minute)
	c.Count(later)
	if c.Foresee(later, keys, ann, first) == 0 || c.Judge(later, keys, ann, first) == 0 {
		t.Error("it passed again in the next minute")
	}
	// the work of the last steps alone makes no second solution
	again, cut := worked(task, 4, 4, 4, 4), 0
	if c.Judge(later, keys, ann, again) != 0 {
		t.Error("a third solution of the same task did not pass")
	}
	for range 3 {
		if c.Judge(later, keys, ann, continued(again, 3-cut)) == 0 {
			t.Errorf("it passed again with %d nonces of its own", 3-cut)
		}
		cut++
	}
	if c.Judge(later, keys, ann, second) != 0 {
		t.Error("another solution of the same task did not pass")
	}
}

// worked solves a task with so many zero bits in each step, and not one more.
func worked(task string, zeros ...int) string {
	for _, n := range zeros {
		task += "." + nonce(task, n, 0)
	}
	return task
}

// continued keeps the first nonces of a solution of 6 bits, and finds others for the rest.
func continued(solution string, keep int) string {
	parts := strings.Split(solution, ".")
	solution = strings.Join(parts[:4+keep], ".")
	for skip := 1; strings.Count(solution, ".") < 7; skip = 0 {
		solution += "." + nonce(solution, 4, skip)
	}
	return solution
}

// nonce finds the nonce number skip by which the next step has that many zero bits, exactly.
func nonce(solution string, zeros, skip int) string {
	parts := strings.Split(solution, ".")
	hash := sha256.Sum256([]byte(strings.Join(parts[:4], ".")))
	for _, nonce := range parts[4:] {
		hash = sha256.Sum256(append(hash[:], nonce...))
	}
	for n := 0; ; n++ {
		nonce := fmt.Sprint(n)
		if sum := sha256.Sum256(append(hash[:], nonce...)); bits.LeadingZeros8(sum[0]) == zeros {
			if skip--; skip < 0 {
				return nonce
			}
		}
	}
}

// Each step by itself is as much work as it must be.
func TestEveryStepIsWork(t *testing.T) {
	task := taskOf(noon, keys[0], ann, 6)
	for _, c := range []struct {
		zeros  []int
		passes bool
	}{
		{[]int{4, 4, 4, 4}, true}, {[]int{5, 4, 6, 4}, true},
		{[]int{3, 4, 4, 4}, false}, {[]int{4, 3, 4, 4}, false}, {[]int{4, 4, 3, 4}, false}, {[]int{4, 4, 4, 3}, false}, {[]int{7, 7, 7, 0}, false},
	} {
		if asked := asking(easy).Judge(noon, keys, ann, worked(task, c.zeros...)); (asked == 0) != c.passes {
			t.Errorf("zero bits %v: asked for %d bits", c.zeros, asked)
		}
	}
}

// Who collected easy tasks while few attempts came gets one attempt for each of them.
func TestEasyTasksServeOnce(t *testing.T) {
	c := challenge.New(challenge.Policy{Above: 1, Window: time.Minute, Least: 6, Most: 10})
	for range 9 {
		c.Count(noon)
	}
	task := taskOf(noon, keys[0], ann, 6)
	if bits := c.Judge(noon, keys, ann, solve(t, task)); bits != 0 {
		t.Fatalf("a solution for the 6 bits of before is asked for %d", bits)
	}
	for range 3 {
		if c.Foresee(noon, keys, ann, solve(t, task)) != 9 || c.Judge(noon, keys, ann, solve(t, task)) != 9 {
			t.Error("more work on the same easy task passed")
		}
	}
	for range 3 { // as hard as it is now, or harder
		for _, bits := range []int{9, 10} {
			if asked := c.Judge(noon, keys, ann, solve(t, taskOf(noon, keys[0], ann, bits))); asked != 0 {
				t.Errorf("%d bits are asked for %d", bits, asked)
			}
		}
	}
	if c.Judge(noon, keys, ann, solve(t, taskOf(noon, keys[0], ann, 5))) == 0 {
		t.Error("fewer bits than are ever asked for passed")
	}
}

func TestSolveEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := challenge.Solve(ctx, "1.1.28.AAAAAAAAAAAAAAAAAAAAAA"); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	for _, task := range []string{"", "2.1.6.AAAAAAAAAAAAAAAAAAAAAA", "1.1.6", "1.1.99.AAAA", "1.1.x.A"} {
		if _, err := challenge.Solve(context.Background(), task); err == nil {
			t.Errorf("%q is solved", task)
		}
	}
}
