package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// SendLease says how far the outbox is with a sale.
type SendLease struct {
	// Epoch is the life of the shard.
	Epoch int64
	// Sent is the last movement that the receiver has; 0: none.
	Sent int64
	// Sending is the last movement of the batch on its way, which begins after Sent; not above
	// Sent: there is no such batch.
	Sending int64
}

// AcquireLease acquires or renews the lease to send a sale's movements, for a time by the
// shard's clock. It records that the batch up to last, of that epoch, is on its way; 0: no
// batch. If another batch is already on its way, SendLease.Sending says so: send that one. False:
// another process has the lease. What precedes the lease is on the replicas by then, so a
// failover does not lose what the receiver gets.
func (j *Journal) AcquireLease(ctx context.Context, sale, owner string, forHow time.Duration, epoch, last int64) (SendLease, bool, error) {
	replies, err := j.shard.RunReplicated(ctx, sale, shard.Op(lua.Outbox, owner, forHow.Milliseconds(), epoch, last))
	if err != nil {
		return SendLease{}, false, err
	}
	r := replies[0]
	at := SendLease{Epoch: r.Number(1), Sent: r.Number(2), Sending: r.Number(3)}
	switch r.Code() {
	case lua.OK:
		return at, true, nil
	case lua.Conflict:
		return at, false, nil
	case lua.NoSale:
		return at, false, shard.ErrNoSale
	}
	return at, false, fmt.Errorf("%w: outbox gave %q", shard.ErrUnavailable, r.Code())
}

// GiveUpLease ends a lease, so that other processes need not wait for it to expire.
func (j *Journal) GiveUpLease(ctx context.Context, sale, owner string) error {
	_, _, err := j.AcquireLease(ctx, sale, owner, 0, 0, 0)
	return err
}

// Sent records that the outbox's receiver has a sale's journal up to an entry: what is before
// it may be trimmed. The position never goes back.
func (j *Journal) Sent(ctx context.Context, sale string, epoch, seq int64) error {
	replies, err := j.shard.Run(ctx, sale, shard.Op(lua.Sent, epoch, seq))
	if err != nil {
		return err
	}
	switch code := replies[0].Code(); code {
	case lua.OK:
		return nil
	case lua.Conflict:
		return &GapError{Sale: sale, Want: replies[0].Number(1) + 1}
	case lua.NoSale:
		return shard.ErrNoSale
	default:
		return fmt.Errorf("%w: sent gave %q", shard.ErrUnavailable, code)
	}
}

// AcquireMirror acquires or renews the lease to write a sale's numbers into the shop's own
// Redis, for a time by the shard's clock; 0 gives it up. state says how that goes; nil: as
// before. False: another process has the lease.
func (j *Journal) AcquireMirror(ctx context.Context, sale, owner string, forHow time.Duration, state *MirrorState) (bool, error) {
	var text []byte
	if state != nil {
		text, _ = json.Marshal(state) // it has only texts, numbers and times
	}
	replies, err := j.shard.Run(ctx, sale, shard.Op(lua.Mirror, owner, forHow.Milliseconds(), string(text)))
	if err != nil {
		return false, err
	}
	switch code := replies[0].Code(); code {
	case lua.OK:
		return true, nil
	case lua.Conflict:
		return false, nil
	case lua.NoSale:
		return false, shard.ErrNoSale
	default:
		return false, fmt.Errorf("%w: mirror gave %q", shard.ErrUnavailable, code)
	}
}

// Mirror is the state that the last owner of the lease has noted, and until when the lease
// holds by the shard's clock. nil: the sale has had no mirror, or one whose state cannot be read.
func (j *Journal) Mirror(ctx context.Context, sale string) (state *MirrorState, until time.Time, err error) {
	meta, err := j.shard.Data(sale).Meta(ctx, "mirror_state", "mirror_until")
	if err != nil {
		return nil, time.Time{}, err
	}
	if json.Unmarshal([]byte(meta.Text(0)), &state) != nil {
		state = nil
	}
	return state, record.TimeOf(meta.Number(1)), nil
}
