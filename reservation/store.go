package reservation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// ErrUnavailable wraps every failure to get an answer from Redis. Whether the
// operation ran is then unknown, unless ErrNotSent is wrapped too.
var ErrUnavailable = errors.New("redis does not answer")

// ErrNewerSchema: a newer edge has changed the layout of the keys.
var ErrNewerSchema = errors.New("redis holds data of a newer stockgate: update this edge")

// ErrMemoryPolicy: Redis would throw stock away when its memory is full.
var ErrMemoryPolicy = errors.New("redis may evict keys")

// longestCall bounds a call that no context bounds.
const longestCall = 30 * time.Second

// quiet keeps go-redis from writing to stderr on its own: what it says reaches the
// caller as an error.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var quietOnce sync.Once

// Store is one Redis with its scripts. It dials when it is first used, and is
// safe for concurrent use.
type Store struct {
	redis redis.UniversalClient
	// claims has connections of its own: however many attempts wait for stock, a
	// confirm and the watch over the sales never queue behind them.
	claims  redis.UniversalClient
	options Options
	prefix  string
	scripts lua.Scripts
	clocks  sync.Map // sale id → *clock; in a cluster, each shard's node has its own
	mono    func() time.Time
	// calls has what attempts and their outcomes ask of a sale, rateCalls what they ask
	// of shared rates.
	calls, rateCalls *combiner
}

// Open makes a store. It does not dial.
func Open(o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	u, err := o.universal()
	if err != nil {
		return nil, err
	}
	claims := redis.NewUniversalClient(u)
	// All other calls are bounded by their contexts: loading a large sale takes longer
	// than an attempt may wait.
	u.ReadTimeout, u.WriteTimeout = longestCall, longestCall
	quietOnce.Do(func() { redis.SetLogger(quiet{}) })
	s := &Store{redis: redis.NewUniversalClient(u), claims: claims, options: o, prefix: o.Prefix, scripts: *o.Scripts, mono: time.Now}
	s.calls, s.rateCalls = newCombiner(s.sendOperations), newCombiner(s.sendRates)
	return s, nil
}

// Close closes all connections. Who waits for a call that was not sent, or comes
// later, gets ErrNotSent.
func (s *Store) Close() error {
	s.calls.close()
	s.rateCalls.close()
	err := errors.Join(s.claims.Close(), s.redis.Close())
	s.calls.wait()
	s.rateCalls.wait()
	return err
}

// Timeout is how long an attempt waits for Redis.
func (s *Store) Timeout() time.Duration { return s.options.Timeout }

// Seq is the newest number in a sale's journal that any answer has told: what an
// operation did is in the journal up to there.
func (s *Store) Seq(sale string) int64 { return s.clock(sale).seq.Load() }

func (s *Store) clock(sale string) *clock {
	if c, ok := s.clocks.Load(sale); ok {
		return c.(*clock)
	}
	c, _ := s.clocks.LoadOrStore(sale, &clock{mono: s.mono})
	return c.(*clock)
}

// operation is one operation of a script call: its name and its arguments.
type operation struct {
	name string
	args []any
}

// reply is an operation's answer.
type reply []any

func (r reply) code() lua.Code {
	if len(r) == 0 {
		return ""
	}
	word, _ := r[0].(string)
	return lua.Code(word)
}

func (r reply) word(i int) string {
	if i >= len(r) {
		return ""
	}
	w, _ := r[i].(string)
	return w
}

func (r reply) number(i int) int64 {
	if i >= len(r) {
		return 0
	}
	n, _ := r[i].(int64)
	return n
}

// run calls a script once with one or more operations on one sale. An error
// means that it is unknown whether the operations ran, unless it says otherwise.
func (s *Store) run(ctx context.Context, script lua.Script, sale string, ops ...operation) ([]reply, error) {
	replies, _, err := s.runAt(ctx, script, sale, ops...)
	return replies, err
}

// runAt is run with the shard's seq after the call: what the replies say was so after
// the journal's entry of that number, or before it.
func (s *Store) runAt(ctx context.Context, script lua.Script, sale string, ops ...operation) ([]reply, int64, error) {
	return s.runWith(ctx, 0, script, sale, ops...)
}

// runReplicated is run for what a caller is promised: its answer stays true after a
// failover. Its error is an ErrNotReplicated when the operations ran and too few replicas
// have them.
func (s *Store) runReplicated(ctx context.Context, script lua.Script, sale string, ops ...operation) ([]reply, error) {
	replies, _, err := s.runWith(ctx, s.options.ReplicaAcks, script, sale, ops...)
	return replies, err
}

func (s *Store) runWith(ctx context.Context, acks int, script lua.Script, sale string, ops ...operation) ([]reply, int64, error) {
	client := s.redis
	for _, op := range ops {
		if op.name == "lookup" {
			client = s.claims
		}
	}
	before := s.clock(sale).mark()
	raw, err := s.eval(ctx, client, script, s.shardKeys(sale), s.operationArgs(sale, ops), acks)
	return s.replies(sale, before, raw, len(ops), err)
}

// operationArgs are the arguments of a call that runs some operations.
func (s *Store) operationArgs(sale string, ops []operation) []any {
	n := 5
	for _, op := range ops {
		n += 2 + len(op.args)
	}
	args := make([]any, 0, n)
	shard, own := s.clock(sale).latest()
	args = append(args, s.channel(), sale, lua.Schema, shard, own)
	for _, op := range ops {
		args = append(args, op.name, len(op.args))
		args = append(args, op.args...)
	}
	return args
}

// header is what comes before the answers of a script: Redis's time, the lead of the shard's
// clock, and the shard's seq.
const header = 3

// replies reads what a script has answered to some operations on a sale, and the shard's
// seq after the call. before is what was known when they were sent. What the call has failed
// with goes on to the caller.
func (s *Store) replies(sale string, before mark, raw []any, n int, failed error) ([]reply, int64, error) {
	if failed != nil && !errors.Is(failed, ErrNotReplicated) {
		if brokenConnection(failed) {
			s.clock(sale).broken.Store(true)
		}
		return nil, 0, failed
	}
	if c := s.clock(sale); c.broken.Load() {
		c.broken.Store(false)
	}
	if len(raw) != n+header {
		return nil, 0, fmt.Errorf("%w: a script gave %d answers to %d operations", ErrUnavailable, len(raw)-header, n)
	}
	ms, ok := raw[0].(int64)
	lead, ok2 := raw[1].(int64)
	if ok && ok2 {
		s.clock(sale).heard(before.sent, ms, lead)
	}
	seq, _ := raw[2].(int64)
	s.clock(sale).sawSeq(before, seq)
	replies := make([]reply, n)
	var last textReply
	restoring := 0 // one of several may wait for its own reservation only
	for i := range replies {
		replies[i] = replyOf(raw[i+header], &last)
		switch replies[i].code() {
		case lua.NewerSchema:
			return nil, 0, ErrNewerSchema
		case lua.Restoring:
			restoring++
		}
	}
	if restoring > 0 && restoring == n {
		return nil, 0, ErrRestoring
	}
	s.clock(sale).fell(before, seq)
	return replies, seq, failed
}

// eval runs a script by its name, loading it where Redis does not have it yet. With acks
// it waits for so many replicas; short of them the error is an ErrNotReplicated, beside
// the answer.
func (s *Store) eval(ctx context.Context, client redis.UniversalClient, script lua.Script, keys []string, args []any, acks int) ([]any, error) {
	for range 2 {
		raw, err := s.evalOnce(ctx, client, script, keys, args, acks)
		if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return raw, explain(err)
		}
		// In a cluster SCRIPT LOAD goes to every master.
		if err := client.ScriptLoad(ctx, script.Source).Err(); err != nil {
			return nil, explain(err)
		}
	}
	return nil, fmt.Errorf("%w: it does not keep the scripts that are loaded", ErrUnavailable)
}

func (s *Store) evalOnce(ctx context.Context, client redis.UniversalClient, script lua.Script, keys []string, args []any, acks int) ([]any, error) {
	if acks == 0 {
		return client.EvalSha(ctx, script.SHA, keys, args...).Slice()
	}
	done := s.evalReplicated(ctx, client, acks, scriptCall{script, keys, args})
	return done[0].raw, done[0].err
}

// hints say what an operator can do about an error of Redis. With most of them it
// refuses a script as a whole, before its first write.
var hints = []struct {
	prefix, help string
	refused      bool
}{
	{"OOM", "its memory is full: raise maxmemory", true},
	{"MISCONF", "it cannot write to its disk: see its log", true},
	{"NOREPLICAS", "too few replicas are connected: see min-replicas-to-write", true},
	{"READONLY", "it is a replica: point `redis` at the master, or use sentinel", true},
	{"LOADING", "it is still loading its data", true},
	{"NOAUTH", "it asks for a password", true},
	{"WRONGPASS", "it refuses the password", true},
	{"NOPERM", "its user may not run what stockgate needs: see docs/operate.md", true},
	{"The user executing the script", "its user may not run what stockgate's scripts need: see docs/operate.md", false},
}

// explain wraps what go-redis says in ErrUnavailable, with what an operator can do
// about it.
func explain(err error) error {
	if err == nil || errors.Is(err, ErrNotReplicated) {
		return err
	}
	if isWrongType(err) {
		return fmt.Errorf("%w: another client has written to stockgate's keys: run 'caddy stockgate doctor', which names those of a sale and says what to do (%w)", ErrUnavailable, err)
	}
	if redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(strings.ToLower(err.Error()), "'select'") {
		return fmt.Errorf("%w: its user may not choose a database: a database other than 0 needs +select in the user's ACL (%w)", ErrUnavailable, err)
	}
	for _, hint := range hints {
		if redis.HasErrorPrefix(err, hint.prefix) {
			return fmt.Errorf("%w: %s (%w)", ErrUnavailable, hint.help, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// neverBegan says that Redis itself refused to run a script.
func neverBegan(err error) bool {
	for _, hint := range hints {
		if hint.refused && redis.HasErrorPrefix(err, hint.prefix) {
			return true
		}
	}
	return false
}

// checkMemoryPolicy refuses a Redis that evicts keys under memory pressure: stock
// would be lost without a word.
func (s *Store) checkMemoryPolicy(ctx context.Context) error {
	if s.scripts == lua.Embedded {
		return nil
	}
	info, err := s.redis.Info(ctx, "memory").Result()
	if err != nil {
		return explain(err)
	}
	if policy, ok := infoFields(info)["maxmemory_policy"]; ok && policy != "noeviction" {
		return fmt.Errorf("%w: its maxmemory-policy is %s, stock would be lost; set `maxmemory-policy noeviction`", ErrMemoryPolicy, policy)
	}
	return nil
}

func ms(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// brokenConnection says that the connection ended under a call.
func brokenConnection(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
