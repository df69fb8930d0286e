package doctor

import (
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	leastRedis = 7 // major version of Redis, which Valkey continues
	// clockOff and clockWrong are how far the clocks of an edge and of Redis may differ:
	// holds follow Redis's clock, the edge's log and the bearer tokens that it verifies
	// follow its own, and shops check reservation tokens by theirs.
	clockOff, clockWrong = time.Second, 30 * time.Second
	// memoryHigh and memoryFull are percents.
	memoryHigh, memoryFull = 75, 90
)

// judgeServer adds the findings about a Redis that has stock. acks is how many replicas must
// have an operation before it counts as done.
func judgeServer(d *adminapi.Diagnosis, s *shard.Server, acks int) {
	judgeClock(d, s)
	if s.Embedded {
		d.Add(adminapi.LevelWarning, "persistence", "redis is embedded: nothing survives this process, and only clients on this machine are sold to; for a real sale run a redis-server")
		return
	}
	name, major := "Redis", s.Version
	if s.Valkey {
		name = "Valkey"
	}
	major, _, _ = strings.Cut(major, ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastRedis {
		d.Add(adminapi.LevelError, "version", "%s %s is too old for the scripts: use Redis %d or newer, or Valkey", name, s.Version, leastRedis)
	} else {
		d.Add(adminapi.LevelOK, "version", "%s %s", name, s.Version)
	}
	judgeMemory(d, s)
	judgePersistence(d, s, acks)
	judgeDefaultUser(d, s)
	judgeReplicas(d, s, acks)
}

func judgeClock(d *adminapi.Diagnosis, s *shard.Server) {
	off := s.Ahead.Abs() - s.Delay/2 // at least
	word := "ahead of"
	if s.Ahead < 0 {
		word = "behind"
	}
	switch about := s.Ahead.Abs().Round(100 * time.Millisecond); {
	case off > clockWrong:
		d.Add(adminapi.LevelError, "clock", "redis's clock is %v %s this machine's: holds and sales begin and end by it, and shops may find tokens expired; run NTP on both", about, word)
	case off > clockOff:
		d.Add(adminapi.LevelWarning, "clock", "redis's clock is %v %s this machine's: run NTP on both", about, word)
	default:
		d.Add(adminapi.LevelOK, "clock", "redis answers in %v, and its clock agrees with this machine's now", s.Delay.Round(10*time.Microsecond))
	}
}

func judgeMemory(d *adminapi.Diagnosis, s *shard.Server) {
	if s.Policy != "noeviction" {
		d.Add(adminapi.LevelError, "policy", "redis would throw stock away when its memory is full (maxmemory-policy %s), so nothing is sold: set `maxmemory-policy noeviction`", s.Policy)
	} else {
		d.Add(adminapi.LevelOK, "policy", "redis evicts nothing")
	}
	bound, what := s.Max, "maxmemory"
	if bound == 0 {
		bound, what = s.Machine, "the machine's memory"
	}
	if bound == 0 {
		return
	}
	used := humanize.IBytes(uint64(s.Used)) + " of " + humanize.IBytes(uint64(bound)) + ", " + what
	switch percent := int(float64(s.Used) / float64(bound) * 100); {
	case percent >= memoryFull:
		d.Add(adminapi.LevelError, "memory", "redis uses %d%% (%s): when it is full the edges refuse every attempt; raise maxmemory, or see that the ledger follows, so that journals can be trimmed", percent, used)
	case percent >= memoryHigh:
		d.Add(adminapi.LevelWarning, "memory", "redis uses %d%% (%s): raise maxmemory before the sale", percent, used)
	case s.Max == 0:
		d.Add(adminapi.LevelWarning, "memory", "redis has no maxmemory: instead of refusing it grows until the machine ends it (it uses %s); set maxmemory to what it may have", used)
	default:
		d.Add(adminapi.LevelOK, "memory", "redis uses %d%% (%s)", percent, used)
	}
}

func judgePersistence(d *adminapi.Diagnosis, s *shard.Server, acks int) {
	const loses = "units that were sold since would be sold again"
	back := "is back at its last snapshot"
	if s.Snapshots != nil && !*s.Snapshots {
		back = "is empty, because it writes no snapshots either"
	}
	switch {
	case s.Unwritten != "":
		d.Add(adminapi.LevelError, "persistence", "redis could not write its %s to its disk: see its log and the space on the disk", s.Unwritten)
	case !s.AOF && acks == 0:
		d.Add(adminapi.LevelError, "persistence", "redis writes no append-only file: when it restarts it %s, and %s; set `appendonly yes` and `appendfsync always`", back, loses)
	case !s.AOF:
		d.Add(adminapi.LevelWarning, "persistence", "redis writes no append-only file, and only its replicas have what was sold: after a restart of all of them %s; set `appendonly yes`", loses)
	case s.Fsync == "":
		d.Add(adminapi.LevelOK, "persistence", "redis writes an append-only file; whether with `appendfsync always` cannot be seen, because its user may not run CONFIG GET")
	case s.Fsync == "always" || s.Fsync == "everysec" && acks > 0:
		d.Add(adminapi.LevelOK, "persistence", "redis writes an append-only file, appendfsync %s", s.Fsync)
	default:
		d.Add(adminapi.LevelWarning, "persistence", "redis forces its append-only file to the disk only now and then (appendfsync %s): when its machine fails, the last writes are lost and %s; "+
			"set `appendfsync always`, or let replicas confirm with `replica_acks`", s.Fsync, loses)
	}
}

// judgeDefaultUser adds whether the server can read again what it has written: most versions of Redis and Valkey
// do so as their default user, and skip transactions that it may not run, see https://github.com/redis/redis/issues/14541
// and https://github.com/valkey-io/valkey/issues/3983.
func judgeDefaultUser(d *adminapi.Diagnosis, s *shard.Server) {
	const remedy = "write `user default off ~* &* +@all` in its configuration, which lets no client in, and run `ACL SETUSER default off ~* &* +@all` now"
	switch {
	case !s.AOF || s.User == "" && s.Replays == nil:
	case s.Replays == nil:
		d.Add(adminapi.LevelWarning, "replay", "redis reads its append-only file as its default user, and whether that may do what is in it cannot be seen: allow the user %s `+acl|dryrun`; "+
			"without these rights all that was sold is gone when redis starts again", s.User)
	case !*s.Replays:
		d.Add(adminapi.LevelError, "replay", "redis reads its append-only file as its default user, who may not do what is in it: most versions start without all that was sold, and say nothing; %s", remedy)
	default:
		d.Add(adminapi.LevelOK, "replay", "redis may read its append-only file again")
	}
}

func judgeReplicas(d *adminapi.Diagnosis, s *shard.Server, acks int) {
	switch {
	case s.Replica:
		d.Add(adminapi.LevelError, "replicas", "this redis is a replica and takes no writes: point `redis` at the master, or use sentinel")
	case s.Replicas < acks:
		d.Add(adminapi.LevelError, "replicas", "replica_acks wants %d, and the replicas that are connected are %d: buyers, the shop and operators hear 503; connect more, or lower replica_acks", acks, s.Replicas)
	case s.Replicas > 0 && acks == 0:
		d.Add(adminapi.LevelWarning, "replicas", "the edges do not wait for the replicas (%d) of this redis: a failover may lose what was sold, and its units would be sold again; set `replica_acks 1 50ms`", s.Replicas)
	case acks > 0:
		d.Add(adminapi.LevelOK, "replicas", "replicas that are connected: %d; that must have an operation before it counts as done: %d", s.Replicas, acks)
	default:
		d.Add(adminapi.LevelOK, "replicas", "redis has no replicas, and none is waited for")
	}
}
