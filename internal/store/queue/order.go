package queue

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Order is what an edge needs to send an order whose request is not open any more.
type Order struct {
	// Gate is the print of the gate, and Server the name of its server. Config is the print of all of the
	// gate's configuration; empty: an older edge has made the order, and Gate is that.
	Gate, Server string
	Config       string `json:",omitempty"`
	// Reads is the print of the options that say what an order is, and empty where no lookup does.
	Reads string `json:",omitempty"`
	// Mode and HoldFor are those of the gate that made the order; empty: an older edge has made it. At is
	// when it was read.
	Mode        record.Mode   `json:",omitempty"`
	HoldFor     time.Duration `json:",omitempty"`
	At          time.Time     `json:",omitzero"`
	Attempt     sale.Attempt
	Lines       []sale.Line
	Method, URI string
	Host, Proto string
	// Remote is the address of the connection.
	Remote string
	Header http.Header
	Body   []byte
	TLS    *TLS `json:",omitempty"`
	// KeepCopy is how long the answer is kept for repeats under the idempotency key; 0: there is
	// none.
	KeepCopy time.Duration `json:",omitempty"`
}

// TLS is what handlers may ask of the connection.
type TLS struct {
	Version, Cipher  uint16
	ServerName, ALPN string
	Resumed          bool
	// Peer are the client's certificates (DER).
	Peer [][]byte `json:",omitempty"`
}

// Answer is what the shop has answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// MaxAnswer is how many bytes of a body are kept.
const MaxAnswer = 64 << 10

// ErrUnreadable says that an order or an answer was packed with another secret.
var ErrUnreadable = errors.New("it cannot be decrypted: another client has written it, or the identity secret was replaced")

// Pack encrypts an order, so that Redis has nothing of a person in clear.
func (q *Queue) Pack(sale, id string, o *Order) ([]byte, error) {
	return q.seal("order", sale, id, o)
}

func (q *Queue) cipher() (cipher.AEAD, error) {
	secret, err := q.Secret()
	if err != nil {
		return nil, err
	}
	key := secret.Derive("queue")
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (q *Queue) seal(kind, sale, id string, v any) ([]byte, error) {
	aead, err := q.cipher()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, aead.NonceSize(), aead.NonceSize()+len(text)+aead.Overhead())
	_, _ = rand.Read(sealed) // never fails
	return aead.Seal(sealed, sealed, text, []byte(kind+"\x00"+sale+"\x00"+id)), nil
}

func (q *Queue) open(kind, sale, id string, sealed []byte, v any) error {
	aead, err := q.cipher()
	if err != nil {
		return err
	}
	if len(sealed) < aead.NonceSize() {
		return ErrUnreadable
	}
	nonce, text := sealed[:aead.NonceSize()], sealed[aead.NonceSize():]
	text, err = aead.Open(nil, nonce, text, []byte(kind+"\x00"+sale+"\x00"+id))
	if err != nil {
		return ErrUnreadable
	}
	return json.Unmarshal(text, v)
}

// dispatch sends an order whose request is not open at this edge.
func (q *Queue) dispatch(t Turn) {
	if q.Abandoned != nil && q.Abandoned(t.Sale, t.ID) { // its client has heard that there is no order
		_ = q.Cancel(q.ctx, t.Sale, t.ID, "unsent")
		return
	}
	o, err := q.order(q.ctx, t)
	var sender Sender
	if err == nil {
		q.line(t.Sale).isOf(o.Gate)
		sender = q.senderOf(o)
	}
	if sender != nil {
		sender.Dispatch(q.ctx, t, o)
		return
	}
	if errors.Is(err, ErrUnreadable) {
		q.Log.Error("an order that waits for the shop cannot be read: its stock is released", zap.String("sale", t.Sale), zap.String("reservation", t.ID), zap.Error(err))
		_ = q.Cancel(q.ctx, t.Sale, t.ID, "unreadable")
		return
	}
	if q.Yield(q.ctx, t) == nil { // should Redis not hear it, the turn ends by itself
		q.line(t.Sale).poke() // its turn is another order's now
	}
}

// order reads what is to be sent.
func (q *Queue) order(ctx context.Context, t Turn) (*Order, error) {
	ctx, cancel := context.WithTimeout(ctx, q.shard.Timeout())
	defer cancel()
	packed, err := q.shard.Data(t.Sale).Bytes(ctx, shard.OrdersKey, "p|"+t.ID)
	if err != nil {
		return nil, err
	}
	o := new(Order)
	return o, q.open("order", t.Sale, t.ID, packed, o)
}

// ErrAnswerTooLarge says that an answer is larger than all answers of a sale may be.
var ErrAnswerTooLarge = errors.New("the shop's answer is larger than the queue's memory")

// KeepAnswer keeps what the shop has answered to an order for so long. All answers of the sale
// together take at most so many bytes: the oldest make room, and dropped says how many had to
// before their time.
func (q *Queue) KeepAnswer(ctx context.Context, sale, id string, a *Answer, keep time.Duration, most int64) (dropped int64, err error) {
	sealed, err := q.seal("answer", sale, id, a)
	if err != nil {
		return 0, err
	}
	raw, err := q.shard.Eval(ctx, lua.KeepAnswer, q.shard.QueueAnswersKeys(sale, id), []any{id, sealed, keep.Milliseconds(), most}, 0)
	if err != nil {
		return 0, err
	}
	r := shard.Reply(raw)
	if r.Number(0) == 0 {
		return r.Number(1), ErrAnswerTooLarge
	}
	return r.Number(1), nil
}

// TellsAnswersFull reports whether it is time to tell an operator that answers are dropped: once a minute.
func (q *Queue) TellsAnswersFull() bool {
	now := time.Now().Unix()
	last := q.toldFull.Load()
	return now-last >= 60 && q.toldFull.CompareAndSwap(last, now)
}

// Answer returns what the shop has answered to an order; nil: nothing is kept.
func (q *Queue) Answer(ctx context.Context, sale, id string) (*Answer, error) {
	sealed, err := q.shard.QueueAnswer(ctx, sale, id)
	if sealed == nil || err != nil {
		return nil, err
	}
	a := new(Answer)
	return a, q.open("answer", sale, id, sealed, a)
}

// Ticket names an order to its buyer. It tells nothing, and cannot be guessed.
func (q *Queue) Ticket(sale, id string) (string, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return "", fmt.Errorf("reservation %s has no place: its id is no UUID", id)
	}
	secret, err := q.Secret()
	if err != nil {
		return "", err
	}
	sum := secret.Ticket(sale, id)
	b := append(append(parsed[:], sum[:]...), sale...)
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// IsTicket reports whether a text may be a ticket, even if another one has made it.
func IsTicket(text string) bool {
	_, ok := ticketBytes(text)
	return ok
}

func ticketBytes(ticket string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(ticket)
	if err != nil || len(b) < 33 || !sale.IsID(string(b[32:])) {
		return nil, false
	}
	return b, true
}

// ReadTicket returns the order that a ticket names; false: this queue has not made it.
func (q *Queue) ReadTicket(ticket string) (sale, id string, ok bool) {
	b, ok := ticketBytes(ticket)
	if !ok {
		return "", "", false
	}
	secret, err := q.Secret()
	if err != nil {
		return "", "", false
	}
	sale, id = string(b[32:]), uuid.UUID(b[:16]).String()
	sum := secret.Ticket(sale, id)
	return sale, id, subtle.ConstantTimeCompare(sum[:], b[16:32]) == 1
}
