package edge_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// silence is a shard whose edges a test ages.
type silence struct{ *beats }

func newSilence(t *testing.T) *silence { return &silence{newBeats(t)} }

// beat is a heartbeat of an edge. It returns the names of those that count as silent.
func (s *silence) beat(edge string) []string { return s.does(edge, "beat") }

func (s *silence) does(edge, does string) (names []string) {
	s.t.Helper()
	r := s.say(&shard.Beat{Edge: edge, Does: does, Wait: time.Hour})
	if r.Code() != "ok" {
		s.t.Fatalf("%s of %s gives %v", does, edge, r)
	}
	for line := range strings.Lines(r.Text(3)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
	}
	return names
}

// quiet has edges heard a minute and a bit earlier than they were.
func (s *silence) quiet(edges ...string) {
	s.t.Helper()
	c, ctx := s.p.primary.Client(), stocktest.Soon(s.t)
	for _, edge := range edges {
		at, err := c.HGet(ctx, edgesKey(s.c), edge).Int64()
		if err == nil {
			err = c.HSet(ctx, edgesKey(s.c), edge, at-61_000).Err()
		}
		if err != nil {
			s.t.Fatal(edge, err)
		}
	}
}

// meta returns a field of the sale's meta, or sets it.
func (s *silence) meta(field string, value ...string) string {
	s.t.Helper()
	c, ctx, key := s.p.primary.Client(), stocktest.Soon(s.t), s.c.ShardKeys("s")[shard.MetaKey]
	if value != nil {
		if err := c.HSet(ctx, key, field, value[0]).Err(); err != nil {
			s.t.Fatal(err)
		}
		return ""
	}
	return c.HGet(ctx, key, field).Val()
}

// later has what came and what was noted so far have been a minute earlier.
func (s *silence) later() {
	s.t.Helper()
	lines := strings.FieldsFunc(s.meta("silent"), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		words := strings.Fields(line)
		noted, _ := strconv.ParseInt(words[1], 10, 64)
		lines[i] = fmt.Sprint(words[0], " ", noted-60_000, " ", words[2])
	}
	s.meta("silent", strings.Join(lines, "\n"))
	came := strings.Fields(s.meta("came"))
	for i := 0; i < len(came); i += 2 {
		if at, _ := strconv.ParseInt(came[i], 10, 64); at > 0 {
			came[i] = fmt.Sprint(at - 62_000)
		}
	}
	s.meta("came", strings.Join(came, " "))
}

// An edge that is not heard any more is silent, unless it was stopped or another one has come in its place.
func TestSilentEdges(t *testing.T) {
	t.Parallel()
	const a1, a2, b1 = "a-AAAAAAAAAAAAAAAAAAAAAAAAAA", "a-BBBBBBBBBBBBBBBBBBBBBBBBBB", "b-CCCCCCCCCCCCCCCCCCCCCCCCCC"
	const pod1, pod2, pod3 = "edge-7d9f8b6c5d-x2x4z-AAAA", "edge-7d9f8b6c5d-bbbbb-BBBB", "edge-5b5f8b6c5d-ccccc-CCCC"
	for name, c := range map[string]struct {
		run  func(*silence)
		want []string
	}{
		"one that was killed": {func(s *silence) { s.quiet(a1) }, []string{a1}},
		"one that is heard again": {func(s *silence) {
			s.quiet(a1)
			s.beat(b1)
			s.beat(a1)
		}, nil},
		"one that is heard after all others": {func(s *silence) {
			s.quiet(a1, b1)
			s.beat(a1)
			s.beat(b1)
		}, nil},
		"one that was stopped": {func(s *silence) { s.does(a1, "leave") }, nil},
		"one that was stopped where a replica lacks something": {func(s *silence) {
			s.does(a1, "stop")
			s.quiet(a1)
		}, nil},
		"one that was killed and started again": {func(s *silence) {
			s.beat(a2)
			s.quiet(a1)
		}, nil},
		"one that was killed and started again later": {func(s *silence) {
			s.quiet(a1)
			s.beat(b1)
			s.beat(a2)
		}, nil},
		"one of two on a machine": {func(s *silence) {
			s.beat(a2)
			s.later()
			s.beat(a1)
			s.quiet(a2)
		}, []string{a2}},
		"two on a machine, of which one was started again": {func(s *silence) {
			s.beat(a2)
			s.later()
			s.beat(a1)
			s.quiet(a1, a2)
			s.beat("a-DDDDDDDDDDDDDDDDDDDDDDDDDD")
		}, []string{a1}},
		"a pod that a Deployment replaces": {func(s *silence) {
			s.beat(pod1)
			s.beat(pod2)
			s.later()
			s.quiet(pod1)
			s.beat(pod3)
		}, nil},
		"a pod that is not replaced": {func(s *silence) {
			s.beat(pod1)
			s.beat(pod2)
			s.later()
			s.beat(pod2)
			s.quiet(pod1)
		}, []string{pod1}},
		"one that an operator knows of": {func(s *silence) {
			s.quiet(a1)
			s.beat(b1)
			s.does(a1, "forget")
		}, nil},
		"one of an edge that noted nothing": {func(s *silence) {
			s.meta("came", "")
			s.quiet(a1)
		}, []string{a1}},
		"one of a sale that is over": {func(s *silence) {
			ends := s.meta("ends")
			s.quiet(a1)
			s.meta("ends", "1")
			s.beat(b1)
			s.meta("ends", ends)
		}, nil},
		"a sale that is over has none any more": {func(s *silence) {
			ends := s.meta("ends")
			s.quiet(a1)
			s.beat(b1)
			s.meta("ends", "1")
			s.beat(b1)
			s.meta("ends", ends)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSilence(t)
			s.beat(a1)
			s.beat(b1)
			s.later()
			c.run(s)
			if early := s.beat(b1); early != nil {
				t.Errorf("at once %q are silent", early)
			}
			s.later()
			if got := s.beat(b1); !slices.Equal(got, c.want) {
				t.Errorf("%q are silent, want %q", got, c.want)
			}
		})
	}
}

// The newest silent edges are kept.
func TestSilentEdgesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSilence(t)
	for i := range 30 {
		name := fmt.Sprintf("m%d-AAAA", i)
		s.beat(name)
		s.quiet(name)
		s.beat("last-AAAA")
	}
	s.later()
	if got := s.beat("last-AAAA"); len(got) != 20 || got[0] != "m10-AAAA" || got[19] != "m29-AAAA" {
		t.Errorf("%q are silent, want the last 20", got)
	}
	if n := len(strings.Fields(s.meta("came"))); n != 2 {
		t.Errorf("came has %d words, want the time and the name of the edge that lives", n)
	}
}
