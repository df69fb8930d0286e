package shard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// ErrNotReplicated says that the operation ran, but fewer replicas than replica_acks
// acknowledged it in time, so that a failover may lose it. It is an ErrUnavailable: nothing is
// promised. The same operation with the same id gives the same answer, and waits again.
var ErrNotReplicated = errors.New("too few replicas have it")

// replicaError is an ErrNotReplicated. It does not unwrap to the error of WAIT, which says
// nothing about the script before it.
type replicaError struct {
	have, want int
	within     time.Duration
	cause      error // WAIT itself failed
}

func (e *replicaError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("it ran here, but redis did not say how many replicas have it (%v): ask for the same again", e.cause)
	}
	return fmt.Sprintf("it ran here, but %d of %d replicas have it after %v: ask for the same again", e.have, e.want, e.within)
}

func (e *replicaError) Is(target error) bool {
	return target == ErrNotReplicated || target == ErrUnavailable
}

// ScriptCall is a script with its keys and arguments.
type ScriptCall struct {
	script *lua.Script
	keys   []string
	args   []any
}

// CallOf makes the call of an operation that is a script of its own.
func (s *Client) CallOf(what *lua.Operation, keys []string, args []any) ScriptCall {
	if what.Shared() {
		panic(what.Name + " shares its script: use CallOfAll")
	}
	return ScriptCall{s.Options.Scripts.Of(what), keys, args}
}

// CallOfAll makes the call that runs some operations on one sale.
func (s *Client) CallOfAll(ctx context.Context, sale string, ops []Operation) ScriptCall {
	return ScriptCall{s.scriptOf(ops), s.ShardKeys(sale), s.operationArgs(ctx, sale, ops)}
}

// Evaluated is the result of a ScriptCall.
type Evaluated struct {
	Raw []any
	Err error
}

// EvalReplicated runs scripts one after the other on one connection, which is none of those for attempts.
// Then it waits once until replica_acks replicas have what the scripts wrote.
func (s *Client) EvalReplicated(ctx context.Context, calls ...ScriptCall) []Evaluated {
	return evalReplicated(ctx, s, behind(s.redis), s.Options.ReplicaAcks, calls...)
}

func evalReplicated(ctx context.Context, s *Client, client redis.UniversalClient, acks int, calls ...ScriptCall) []Evaluated {
	pipe := client.Pipeline()
	evals := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		evals[i] = pipe.EvalSha(ctx, c.script.SHA, c.keys, c.args...)
	}
	short := waitForReplicas(ctx, s, pipe, acks)
	out := make([]Evaluated, len(calls))
	for i, eval := range evals {
		if out[i].Raw, out[i].Err = eval.Slice(); out[i].Err == nil && short != nil {
			out[i].Err = short
		}
	}
	return out
}

// EvalEach runs scripts of several sales in one round trip, on no connection of attempts.
func (s *Client) EvalEach(ctx context.Context, calls ...ScriptCall) []Evaluated {
	pipe, evals := behind(s.redis).Pipeline(), make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		evals[i] = pipe.EvalSha(ctx, c.script.SHA, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx)
	out := make([]Evaluated, len(calls))
	for i, c := range calls {
		if out[i].Raw, out[i].Err = evals[i].Slice(); NotLoaded(out[i].Err) {
			out[i].Raw, out[i].Err = eval(ctx, s, behind(s.redis), c.script, c.keys, c.args, 0)
		}
		out[i].Err = Explain(out[i].Err)
	}
	return out
}

// waitForReplicas sends a pipeline and waits until acks replicas have what it wrote, and
// everything that was written before it. It returns nil when they have it.
func waitForReplicas(ctx context.Context, s *Client, pipe redis.Pipeliner, acks int) error {
	// WAIT counts from the last write of its own connection. A repeated operation writes
	// nothing, but its answer must wait until the replicas have the first write. A PUBLISH
	// reaches the replicas like a write, changes nothing, and works when the memory is full.
	pipe.Publish(ctx, s.acksChannel(), "")
	wait := pipe.Do(ctx, "WAIT", acks, s.Options.ReplicaAcksWait.Milliseconds())
	_, _ = pipe.Exec(ctx)
	have, err := wait.Int()
	if err == nil && have >= acks {
		return nil
	}
	return &replicaError{have: have, want: acks, within: s.Options.ReplicaAcksWait, cause: err}
}

// AwaitReplicas waits until as many replicas as replica_acks requires have everything that was
// written so far.
func (s *Client) AwaitReplicas(ctx context.Context) error {
	if s.Options.ReplicaAcks == 0 {
		return nil
	}
	return waitForReplicas(ctx, s, behind(s.redis).Pipeline(), s.Options.ReplicaAcks)
}

// AwaitAllReplicas waits until every replica that is connected has everything that was written
// so far. In a cluster, where WAIT does not name a node, it does not wait.
func (s *Client) AwaitAllReplicas(ctx context.Context) error {
	if s.Options.Cluster || s.Embedded() {
		return nil
	}
	info, err := behind(s.redis).Info(ctx, "replication").Result()
	if err != nil {
		return Explain(err)
	}
	connected, _ := strconv.Atoi(infoFields(info)["connected_slaves"])
	if connected == 0 {
		return nil
	}
	pipe := behind(s.redis).Pipeline()
	pipe.Publish(ctx, s.acksChannel(), "")
	wait := pipe.Do(ctx, "WAIT", connected, time.Second.Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil {
		return Explain(err)
	}
	if have, _ := wait.Int(); have < connected {
		return &replicaError{have: have, want: connected, within: time.Second}
	}
	return nil
}

// FewReplicas is the error of a Redis that answers but can promise nothing. What was read from
// it is valid.
type FewReplicas struct{ error }

func (f FewReplicas) Unwrap() error { return f.error }

// CheckReplicas returns why nothing can be promised at present: too few replicas follow, or
// they are too slow.
func (s *Client) CheckReplicas(ctx context.Context) error {
	acks := s.Options.ReplicaAcks
	if acks == 0 {
		return nil
	}
	err := waitForReplicas(ctx, s, behind(s.redis).Pipeline(), acks)
	if err == nil {
		return nil
	}
	info, infoErr := behind(s.redis).Info(ctx, "replication").Result()
	if infoErr != nil {
		return Explain(infoErr)
	}
	var server Server
	server.read(infoFields(info))
	switch short := err.(*replicaError); {
	case server.Replicas == 0:
		return FewReplicas{fmt.Errorf("%w: replica_acks %d: no replica is connected: connect one, or lower replica_acks", ErrUnavailable, acks)}
	case server.Replicas < acks:
		return FewReplicas{fmt.Errorf("%w: replica_acks %d: only %d replicas are connected: connect more, or lower replica_acks", ErrUnavailable, acks, server.Replicas)}
	case short.cause != nil:
		return FewReplicas{fmt.Errorf("%w: replica_acks %d: WAIT fails: %w", ErrUnavailable, acks, short.cause)}
	default:
		return FewReplicas{fmt.Errorf("%w: replica_acks %d: %d of the %d replicas that are connected have within %v what was written: see why they lag, or give them more time (`replica_acks %d %v`)",
			ErrUnavailable, acks, short.have, server.Replicas, short.within, acks, 2*short.within)}
	}
}
