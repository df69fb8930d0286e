package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Facts that come, grow, change and go: operators hear of each once, of what grows when it has doubled, of an end once it
// is certain, and of nothing that is not known.
func TestDecide(t *testing.T) {
	have, now := map[string]string{}, time.Now()
	doubts := func(n int64) fact {
		return fact{about: "in_doubt s", state: "in_doubt", level: n, over: "None is in doubt.", say: tell(kindInDoubt, "s", "in_doubt", "", "%d are in doubt", n)}
	}
	status := func(state string) fact {
		return fact{about: "sale s", state: state, say: known(tell(kindSale, "s", state, "", "it is %s", state))}
	}
	never, always := func(string) bool { return false }, func(string) bool { return true }
	for i, step := range []struct {
		facts   []fact
		unknown func(string) bool
		calm    func(string) bool
		want    string
	}{
		{facts: []fact{doubts(3), status("closed 1")}, want: "3 are in doubt"}, // it was closed before
		{facts: []fact{doubts(3), status("closed 1")}},
		{facts: []fact{doubts(5), status("open 2")}, want: "it is open 2"},
		{facts: []fact{doubts(6), status("open 2")}, want: "6 are in doubt"},
		{facts: []fact{doubts(11), status("open 2")}},
		{unknown: always},
		{calm: never},
		{facts: []fact{status("open 2")}, want: "None is in doubt. It took 7m0s. (ended)"},
		{facts: []fact{doubts(1)}, want: "1 are in doubt"}, // and the sale is gone, without a word
		{facts: []fact{doubts(1), status("open 2")}},
	} {
		unknown, calm := step.unknown, step.calm
		if unknown == nil {
			unknown = never
		}
		if calm == nil {
			calm = always
		}
		var said []string
		for _, c := range decide(have, step.facts, now, unknown, calm) {
			if have[c.about] != c.from {
				t.Errorf("step %d: %s comes from %q, and is %q", i, c.about, c.from, have[c.about])
			}
			if have[c.about] = c.to; c.to == "" {
				delete(have, c.about)
			}
			if n := c.notice; n != nil {
				said = append(said, n.Text+map[bool]string{true: " (ended)"}[n.Ended])
			}
		}
		if got := strings.Join(said, ", "); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		now = now.Add(time.Minute)
	}
}

// Text that no edge of this version has written is no state, and is replaced.
func TestUnreadableState(t *testing.T) {
	all := decide(map[string]string{"a": "no JSON"}, []fact{{about: "a", state: "x", say: tell("sale", "s", "x", "", "text")}}, time.Now(), nil, nil)
	if len(all) != 1 || all[0].from != "no JSON" || all[0].notice == nil {
		t.Errorf("%+v", all)
	}
}

// Reports of edges count while they change, and their orders are summed up.
func TestReports(t *testing.T) {
	l, now := newLeading(nil, nil), time.Now()
	said := map[string]string{}
	for i := range 3 {
		said[fmt.Sprint("web-", i)] = fmt.Sprintf(`{"round":1,"shop":{"s":[10,%d]},"conditions":[{"about":"fence s","kind":"fence"}]}`, i)
	}
	said["web-9"] = "of a newer edge"
	if dead := l.hear(said, now); len(dead) != 0 || l.shop(now)["s"] != [2]int64{30, 3} || len(l.conditions(now)) != 1 {
		t.Errorf("%v, %v, %v", dead, l.shop(now), l.conditions(now))
	}
	now = now.Add(deadAfter)
	said["web-2"] = strings.Replace(said["web-2"], `"round":1`, `"round":2`, 1)
	if l.hear(said, now); l.shop(now)["s"] != [2]int64{10, 2} {
		t.Errorf("with two dead edges: %v", l.shop(now))
	}
	now = now.Add(dropAfter)
	if dead := l.hear(said, now); len(dead) != 2 {
		t.Errorf("dead: %v", dead)
	}
	delete(said, "web-0")
	if l.hear(said, now); len(l.edges) != 2 {
		t.Errorf("%d edges are known", len(l.edges))
	}
}
