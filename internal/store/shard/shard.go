package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// LongestCall bounds a call that no context bounds.
const LongestCall = 30 * time.Second

// quiet keeps go-redis from writing to stderr: the caller gets its errors instead.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var quietOnce sync.Once

// Client is the connection to one Redis, or to a cluster, with its scripts. It dials on first
// use, and is safe for concurrent use.
type Client struct {
	// redis runs the commands of this package. The errors of a command go through Explain.
	redis link
	// reserve has connections of its own for what attempts wait for, stock and lookups in
	// lists above all: however many wait, a confirm and the watch over the sales never queue
	// behind them.
	reserve link
	Options Options
	prefix  string   // of every key
	clocks  sync.Map // sale id → *Clock; in a cluster, each shard's node has its own
	mono    func() time.Time
	leases  atomic.Pointer[Leases] // nil: this process needs none
}

// Open prepares the connections to Redis. It does not dial.
func Open(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Scripts == nil { // here: what only checks a configuration puts no scripts together
		o.Scripts = lua.Redis()
	}
	u, err := universal(&o)
	if err != nil {
		return nil, err
	}
	claims := redis.NewUniversalClient(u)
	// All other calls are bounded by their contexts: loading a large sale takes longer than an
	// attempt waits.
	u.ReadTimeout, u.WriteTimeout = LongestCall, LongestCall
	quietOnce.Do(func() { redis.SetLogger(quiet{}) })
	return &Client{redis: redis.NewUniversalClient(u), reserve: claims, Options: o, prefix: o.Prefix, mono: time.Now}, nil
}

// Close closes all connections.
func (s *Client) Close() error { return errors.Join(s.reserve.Close(), s.redis.Close()) }

// Timeout is how long an attempt waits for Redis.
func (s *Client) Timeout() time.Duration { return s.Options.Timeout }

// Seq is the newest journal number of a sale that any answer has reported. The journal has the
// effects of that operation up to this number.
func (s *Client) Seq(sale string) int64 { return s.Clock(sale).Seq.Load() }

func (s *Client) Clock(sale string) *Clock {
	if c, ok := s.clocks.Load(sale); ok {
		return c.(*Clock)
	}
	c, _ := s.clocks.LoadOrStore(sale, &Clock{Mono: s.mono})
	return c.(*Clock)
}

// Embedded reports whether the Redis is in this process.
func (s *Client) Embedded() bool { return s.Options.Scripts.Embedded }

// Run makes one call with one or more operations of the same script on one sale. After an error it is
// unknown whether the operations ran, unless the error says otherwise.
func (s *Client) Run(ctx context.Context, sale string, ops ...Operation) ([]Reply, error) {
	replies, _, err := s.RunAt(ctx, sale, ops...)
	return replies, err
}

// RunAt is Run, and also returns the shard's seq after the call. What the replies say was true
// after the journal's entry of that number, or before it.
func (s *Client) RunAt(ctx context.Context, sale string, ops ...Operation) ([]Reply, int64, error) {
	return s.RunWith(ctx, 0, sale, ops...)
}

// RunReplicated is Run for answers that must stay true after a failover. Its error is an
// ErrNotReplicated when the operations ran and too few replicas have them.
func (s *Client) RunReplicated(ctx context.Context, sale string, ops ...Operation) ([]Reply, error) {
	replies, _, err := s.RunWith(ctx, s.Options.ReplicaAcks, sale, ops...)
	return replies, err
}

// RunWith is RunAt for answers that so many replicas must have. With an ErrNoLease there may be
// replies: those to operations that need no lease count.
func (s *Client) RunWith(ctx context.Context, acks int, sale string, ops ...Operation) ([]Reply, int64, error) {
	leased := acks >= s.Options.ReplicaAcks && slices.ContainsFunc(ops, Operation.NeedsLease)
	if leased {
		_ = s.Acquire(ctx, sale) // what it does is no promise without it, and may be asked again
	}
	script, client := s.scriptOf(ops), behind(s.redis)
	for _, op := range ops {
		if op.Attempt {
			client = behind(s.reserve)
		}
	}
	return s.AgainUnfenced(ctx, sale, func() ([]Reply, int64, error) {
		before := s.Clock(sale).Mark()
		raw, err := eval(ctx, s, client, script, s.ShardKeys(sale), s.operationArgs(ctx, sale, ops), acks)
		replies, seq, err := s.Replies(ctx, sale, before, raw, len(ops), acks, err)
		if err == nil && leased {
			err = s.StillLeased(ctx, sale, before)
		}
		return replies, seq, err
	})
}

// scriptOf is the script that runs operations. A call has one: operations of two are a mistake in the
// program.
func (s *Client) scriptOf(ops []Operation) *lua.Script {
	for _, op := range ops {
		if op.Script != ops[0].Script || !op.Shared() {
			panic("no script has both " + ops[0].Name + " and " + op.Name)
		}
	}
	return s.Options.Scripts.Of(ops[0].Operation)
}

// ReadTime makes a call without operations on a sale's shard: it learns the time of its server, as every
// call does.
func (s *Client) ReadTime(ctx context.Context, sale string) error {
	return readTime(ctx, s, behind(s.redis), sale)
}

// Reach is ReadTime on the connections of attempts. After a connection has broken it also checks that
// there is one again.
func (s *Client) Reach(ctx context.Context, sale string) error {
	return readTime(ctx, s, behind(s.reserve), sale)
}

func readTime(ctx context.Context, s *Client, client redis.UniversalClient, sale string) error {
	before := s.Clock(sale).Mark()
	raw, err := eval(ctx, s, client, s.Options.Scripts.OfNone(), s.ShardKeys(sale), s.operationArgs(ctx, sale, nil), 0)
	_, _, err = s.Replies(ctx, sale, before, raw, 0, 0, err)
	return err
}

// operationArgs returns the arguments of a call that runs some operations.
func (s *Client) operationArgs(ctx context.Context, sale string, ops []Operation) []any {
	n := 7
	for _, op := range ops {
		n += 2 + len(op.Args)
	}
	args := make([]any, 0, n)
	shard, own := s.Clock(sale).latest()
	term, known := s.History(ctx, sale)
	args = append(args, s.Channel(), sale, lua.Schema, shard, own, term, known)
	for _, op := range ops {
		args = append(args, &op.Operation.Name, len(op.Args))
		args = append(args, op.Args...)
	}
	return args
}

// Header is how many values come before the answers of a script: Redis's time, the lead of the
// shard's clock, the shard's seq and its term.
const Header = 4

// Replies reads a script's answers to n operations on a sale, and the shard's seq after the
// call. before is what was known when the call was sent, acks the number of replicas that it
// waited for. failed is the error of the call, which Replies passes on.
func (s *Client) Replies(ctx context.Context, sale string, before ClockMark, raw []any, n, acks int, failed error) ([]Reply, int64, error) {
	if failed != nil && !errors.Is(failed, ErrNotReplicated) {
		if BrokenConnection(failed) {
			s.Clock(sale).Broken.Store(true)
		}
		return nil, 0, failed
	}
	if c := s.Clock(sale); c.Broken.Load() {
		c.Broken.Store(false)
	}
	if len(raw) != n+Header {
		return nil, 0, fmt.Errorf("%w: a script gave %d answers to %d operations", ErrUnavailable, len(raw)-Header, n)
	}
	ms, ok := raw[0].(int64)
	lead, ok2 := raw[1].(int64)
	if ok && ok2 {
		s.Clock(sale).heard(before.sent, ms, lead)
	}
	seq, _ := raw[2].(int64)
	s.Clock(sale).sawSeq(before, seq)
	replies := make([]Reply, n)
	var last TextReply
	restoring, refused := 0, false // one of several operations may wait only for its own reservation
	for i := range replies {
		replies[i] = ReplyOf(raw[i+Header], &last)
		switch replies[i].Code() {
		case lua.NewerSchema:
			return nil, 0, NewerSchema(replies[i].Number(1))
		case lua.Restoring:
			restoring++
		case lua.Fenced:
			refused = true
		}
	}
	if refused {
		if l := s.leases.Load(); l != nil {
			(*l).Fenced(sale)
		}
		return nil, 0, ErrFenced
	}
	term, _ := raw[3].(string)
	// a call without operations is refused nothing, also by a shard that is fenced
	if n > 0 && !s.Clock(sale).hear(before, term, seq, failed == nil && acks >= s.Options.ReplicaAcks) {
		return nil, 0, ErrNoLease
	}
	if restoring > 0 && restoring == n {
		return nil, 0, ErrRestoring
	}
	s.Clock(sale).Fell(before, seq)
	return replies, seq, failed
}

// Eval runs an operation that is a script of its own. With acks it waits for that many replicas; with
// fewer it returns an ErrNotReplicated beside the answer.
func (s *Client) Eval(ctx context.Context, what *lua.Operation, keys []string, args []any, acks int) ([]any, error) {
	client := behind(s.redis)
	if what.Attempt {
		client = behind(s.reserve)
	}
	return eval(ctx, s, client, s.CallOf(what, keys, args).script, keys, args, acks)
}

// eval runs a script by its hash, and loads it where Redis does not have it yet.
func eval(ctx context.Context, s *Client, client redis.UniversalClient, script *lua.Script, keys []string, args []any, acks int) ([]any, error) {
	for _, load := range []func(context.Context, redis.UniversalClient, *lua.Script, []string) error{loadAtHome, loadEverywhere} {
		raw, err := evalOnce(ctx, s, client, script, keys, args, acks)
		if err == nil || !NotLoaded(err) {
			return raw, Explain(err)
		}
		if err := load(ctx, client, script, keys); err != nil {
			return nil, Explain(err)
		}
	}
	raw, err := evalOnce(ctx, s, client, script, keys, args, acks)
	if NotLoaded(err) {
		return nil, fmt.Errorf("%w: it does not keep the scripts that are loaded", ErrUnavailable)
	}
	return raw, Explain(err)
}

// loadAtHome loads a script where its keys are: in a cluster on one node, so that another one
// that does not answer matters only to its own sales.
func loadAtHome(ctx context.Context, client redis.UniversalClient, script *lua.Script, keys []string) error {
	c, ok := client.(*redis.ClusterClient)
	if !ok || len(keys) == 0 {
		return client.ScriptLoad(ctx, script.Source).Err()
	}
	node, err := c.MasterForKey(ctx, keys[0])
	if err != nil {
		return err
	}
	return node.ScriptLoad(ctx, script.Source).Err()
}

// loadEverywhere loads a script on every master: the keys have just moved, and this client has
// not heard yet where to.
func loadEverywhere(ctx context.Context, client redis.UniversalClient, script *lua.Script, _ []string) error {
	return client.ScriptLoad(ctx, script.Source).Err()
}

func evalOnce(ctx context.Context, s *Client, client redis.UniversalClient, script *lua.Script, keys []string, args []any, acks int) ([]any, error) {
	if acks == 0 {
		return client.EvalSha(ctx, script.SHA, keys, args...).Slice()
	}
	done := evalReplicated(ctx, s, client, acks, ScriptCall{script, keys, args})
	return done[0].Raw, done[0].Err
}

// CheckMemoryPolicy refuses a Redis that evicts keys under memory pressure: stock would be lost
// silently.
func (s *Client) CheckMemoryPolicy(ctx context.Context) error {
	if s.Embedded() {
		return nil
	}
	info, err := behind(s.redis).Info(ctx, "memory").Result()
	if err != nil {
		return Explain(err)
	}
	if policy, ok := infoFields(info)["maxmemory_policy"]; ok && policy != "noeviction" {
		return fmt.Errorf("%w: its maxmemory-policy is %s, stock would be lost; set `maxmemory-policy noeviction`", ErrMemoryPolicy, policy)
	}
	return nil
}

// Measure sets another monotonic clock. Callers must use it before any request about a sale.
func (s *Client) Measure(mono func() time.Time) { s.mono = mono }
