package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// Each fault of a Redis is one finding that is not ok, and says what to do.
func TestDoctorJudgesRedis(t *testing.T) {
	const giB = 1 << 30
	well := shard.Server{Version: "7.0.15", Policy: "noeviction", Used: giB / 2, Max: giB, AOF: true, Fsync: "always", Delay: time.Millisecond}
	for name, test := range map[string]struct {
		change func(*shard.Server)
		acks   int
		want   string // level, check and a part of the text; empty: all is well
	}{
		"well":             {func(*shard.Server) {}, 0, ""},
		"Valkey":           {func(s *shard.Server) { s.Version, s.Valkey = "8.0.1", true }, 0, ""},
		"old":              {func(s *shard.Server) { s.Version = "6.2.14" }, 0, "error version Redis 6.2.14 is too old"},
		"no version":       {func(s *shard.Server) { s.Version = "" }, 0, "error version Redis  is too old"},
		"evicts":           {func(s *shard.Server) { s.Policy = "volatile-lru" }, 0, "error policy redis would throw stock away when its memory is full (maxmemory-policy volatile-lru)"},
		"full":             {func(s *shard.Server) { s.Used = giB * 95 / 100 }, 0, "error memory redis uses 94% (973 MiB of 1.0 GiB, maxmemory)"},
		"soon full":        {func(s *shard.Server) { s.Used = giB * 80 / 100 }, 0, "warning memory redis uses 79%"},
		"no maxmemory":     {func(s *shard.Server) { s.Max, s.Machine = 0, 4*giB }, 0, "warning memory redis has no maxmemory"},
		"a full machine":   {func(s *shard.Server) { s.Max, s.Machine = 0, giB/2 }, 0, "error memory redis uses 100% (512 MiB of 512 MiB, the machine's memory)"},
		"no AOF":           {func(s *shard.Server) { s.AOF = false }, 0, "error persistence redis writes no append-only file"},
		"only replicas":    {func(s *shard.Server) { s.AOF, s.Replicas = false, 1 }, 1, "warning persistence redis writes no append-only file, and only its replicas"},
		"everysec":         {func(s *shard.Server) { s.Fsync = "everysec" }, 0, "warning persistence redis forces its append-only file to the disk only now and then (appendfsync everysec)"},
		"everysec, acks":   {func(s *shard.Server) { s.Fsync, s.Replicas = "everysec", 1 }, 1, ""},
		"no fsync":         {func(s *shard.Server) { s.Fsync, s.Replicas = "no", 1 }, 1, "warning persistence redis forces its append-only file to the disk only now and then (appendfsync no)"},
		"fsync unknown":    {func(s *shard.Server) { s.Fsync = "" }, 0, ""},
		"disk":             {func(s *shard.Server) { s.Unwritten = "append-only file" }, 0, "error persistence redis could not write its append-only file"},
		"a replica":        {func(s *shard.Server) { s.Replica = true }, 0, "error replicas this redis is a replica"},
		"replica is away":  {func(s *shard.Server) { s.Replicas = 1 }, 2, "error replicas replica_acks wants 2, and the replicas that are connected are 1"},
		"no wait":          {func(s *shard.Server) { s.Replicas = 1 }, 0, "warning replicas the edges do not wait for the replicas (1) of this redis"},
		"ahead":            {func(s *shard.Server) { s.Ahead = 1600 * time.Millisecond }, 0, "warning clock redis's clock is 1.6s ahead of this machine's"},
		"far behind":       {func(s *shard.Server) { s.Ahead = -time.Minute }, 0, "error clock redis's clock is 1m0s behind this machine's"},
		"slow, not behind": {func(s *shard.Server) { s.Ahead, s.Delay = -1400*time.Millisecond, time.Second }, 0, ""},
		"cannot replay":    {func(s *shard.Server) { s.Replays = new(bool) }, 0, "error replay redis reads its append-only file as its default user, who may not"},
		"replay unknown":   {func(s *shard.Server) { s.User = "gate" }, 0, "warning replay redis reads its append-only file as its default user, and whether"},
		"embedded":         {func(s *shard.Server) { *s = shard.Server{Embedded: true} }, 0, "warning persistence redis is embedded"},
	} {
		s := well
		test.change(&s)
		wantOneFinding(t, name, doctor.JudgeServer(s, test.acks), test.want)
	}
}

// wantOneFinding checks that of what the doctor says only one line is not ok, and how it begins;
// with an empty want every line is.
func wantOneFinding(t *testing.T, name string, said []string, want string) {
	t.Helper()
	got := ""
	for _, line := range said {
		if strings.HasPrefix(line, "ok ") {
			continue
		}
		if got != "" {
			t.Errorf("%s: also %s", name, line)
		}
		got = line
	}
	if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
		t.Errorf("%s: %q, not %q", name, got, want)
	}
}

// What Redis says of itself is read as it is.
func TestInspectReadsRedis(t *testing.T) {
	inspect := func(o shard.Options) shard.Server {
		t.Helper()
		o.Timeout = 10 * time.Second
		store, err := reservation.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		all, err := store.Shard().Inspect(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always", "maxmemory 100mb"))
	s := inspect(shard.Options{Addresses: []string{server.Addr()}})
	if !s.AOF || s.Fsync != "always" || s.Max != 100<<20 || s.Used == 0 || s.Machine == 0 || s.Policy != "noeviction" || s.Version == "" || s.Replica || s.Replicas != 0 || s.Unwritten != "" || s.Embedded {
		t.Errorf("%+v", s)
	}
	if s.Ahead.Abs() > s.Delay/2+2*time.Millisecond {
		t.Errorf("one machine has two clocks: %+v", s)
	}
	if s.Replays == nil || !*s.Replays || s.User != "" {
		t.Errorf("the default user has no rights: %+v", s)
	}
	// a user with the rights that docs/redis.md lists, and no more
	keeper := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "keeper", Password: "pw"})
	defer keeper.Close()
	if err := server.Client().Do(t.Context(), "ACL", "SETUSER", "keeper", "on", ">pw", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Client().Do(t.Context(), "ACL", "SETUSER", "gate", "on", ">pw", "~stockgate:*", "&stockgate:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+info", "+time", "+wait", "+ping").Err(); err != nil {
		t.Fatal(err)
	}
	if s := inspect(shard.Options{Addresses: []string{server.Addr()}, Username: "gate", Password: "pw"}); !s.AOF || s.Fsync != "" || s.Version == "" || s.Replays != nil {
		t.Errorf("%+v", s)
	}
	// one that may look sees whether the default user could replay the file
	for rules, may := range map[string]bool{"off ~* &* +@all": true, "off ~* &* +@all -@dangerous": true, "off resetkeys ~other:* +@all": false, "off ~* &* -@all +@read": false} {
		for _, words := range []string{"default " + rules, "looks on >pw +ping +time +info +acl|dryrun"} {
			args := []any{"ACL", "SETUSER"}
			for _, word := range strings.Fields(words) {
				args = append(args, word)
			}
			if err := keeper.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if s := inspect(shard.Options{Addresses: []string{server.Addr()}, Username: "looks", Password: "pw"}); s.Replays == nil || *s.Replays != may || s.User != "looks" {
			t.Errorf("a default user with %q: %+v", rules, s)
		}
	}
	embedded := redistest.Embedded(t)
	embedded.SetTime(time.Now().Add(-time.Hour))
	if s := inspect(shard.Options{Addresses: []string{embedded.Addr()}, Scripts: lua.Embedded()}); !s.Embedded || s.Ahead > -59*time.Minute || s.Ahead < -62*time.Minute {
		t.Errorf("%+v", s)
	}
}

func TestDoctorJudgesWhoSigns(t *testing.T) {
	for want, n := range map[string]edge.Enrolment{
		"ok signing this edge signs with the registered key a":                        {Signing: "a", First: "a", Known: true},
		"warning signing the key b is registered, and this edge signs with a: finish": {Signing: "b", First: "a", Known: true},
		"error signing the edges sign with key b, which this one does not have":       {Signing: "b", First: "a"},
		"error signing no edge has registered its signing key":                        {First: "a"},
	} {
		if got := doctor.JudgeEnrolment(n); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
