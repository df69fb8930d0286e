// Package notices has what operators are told: what was told already, once over all edges and across restarts, and
// what waits until a receiver takes it. The script notice of package lua keeps both.
package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// MaxWaiting is how many notices may wait. Of more, the oldest make room, and are counted.
	MaxWaiting = 200
	// keep is how long Redis keeps everything without a change.
	keep = 90 * 24 * time.Hour
	// never is longer than any notice waits.
	never = math.MaxInt64 * time.Nanosecond
	// maxAge is after how long a notice is news no more: it is counted, and not sent.
	maxAge = 24 * time.Hour
	// A message has up to maxNotices, and maxBytes of them: some chats take messages of 2,000 characters only.
	maxNotices, maxBytes = 10, 1800
	// maxText and maxCommand bound a notice.
	maxText, maxCommand = 700, 200
)

// Notice is one thing that operators are told.
type Notice struct {
	// Kind is one of those that a configuration names, such as stock.
	Kind string `json:"kind"`
	// Sale is the sale's id; empty: it is about no sale.
	Sale string `json:"sale,omitempty"`
	// State is what has begun, such as sold_out; Ended: it is over.
	State string `json:"state"`
	Ended bool   `json:"ended,omitempty"`
	// Text is a sentence, and Command the command that helps; empty: none does.
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	// Seq is its number, and At when it arose, by Redis's clock.
	Seq int64     `json:"-"`
	At  time.Time `json:"at,omitzero"`
}

// Digest is what a receiver gets at once.
type Digest struct {
	// ID is the same each time the message is sent.
	ID      string
	Notices []Notice
	// Lost is how many notices found no room before it.
	Lost int64
}

// Backlog is what waits.
type Backlog struct {
	Waiting int64
	Oldest  time.Duration
}

// Notices are kept in one Redis. They are safe for concurrent use.
type Notices struct {
	shard *shard.Client
	group time.Duration
}

// New returns the notices of a Redis. group is how long a notice waits for others that go with it.
func New(c *shard.Client, group time.Duration) *Notices { return &Notices{c, group} }

// Raise tells operators something about a subject, whose state becomes to; an empty to forgets the subject. It does so
// if from is what was told of it last, and otherwise nothing: another edge was faster. A nil notice notes the state
// only.
func (n *Notices) Raise(ctx context.Context, about, from, to string, notice *Notice) (bool, error) {
	text := ""
	if notice != nil {
		short := *notice
		short.Text, short.Command = cut(short.Text, maxText), cut(short.Command, maxCommand)
		raw, err := json.Marshal(&short)
		if err != nil {
			return false, err
		}
		text = string(raw)
	}
	return n.done(ctx, "raise", about, from, to, text, MaxWaiting)
}

// Take returns the next message; nil: none is due. It is the same until Sent or Refused.
func (n *Notices) Take(ctx context.Context) (*Digest, Backlog, error) {
	raw, err := n.call(ctx, "take", n.group.Milliseconds(), maxNotices, maxBytes, maxAge.Milliseconds())
	if err != nil {
		return nil, Backlog{}, err
	}
	var head [3]int64
	for i := range head {
		if len(raw) > i {
			head[i], _ = raw[i].(int64)
		}
	}
	waits := Backlog{head[0], time.Duration(head[1]) * time.Millisecond}
	if len(raw) < 4 {
		return nil, waits, nil
	}
	m := &Digest{Lost: head[2]}
	first := ""
	for _, r := range raw[3:] {
		text, _ := r.(string)
		words := strings.SplitN(text, " ", 3)
		if len(words) != 3 {
			return nil, waits, errors.New("a notice in redis cannot be read: another client has written to its key")
		}
		one := Notice{Kind: "unknown"}
		_ = json.Unmarshal([]byte(words[2]), &one) // of a newer edge, what is known
		one.Seq, _ = strconv.ParseInt(words[0], 10, 64)
		ms, _ := strconv.ParseInt(words[1], 10, 64)
		if one.At = time.UnixMilli(ms).UTC(); first == "" {
			first = words[1] + "_" + words[0] // a Redis that was emptied counts from 1 again
		}
		m.Notices = append(m.Notices, one)
	}
	m.ID = fmt.Sprintf("ntc_%s_%d", first, m.last())
	return m, waits, nil
}

// Sent notes that the receiver has a message.
func (n *Notices) Sent(ctx context.Context, m *Digest) error {
	_, err := n.done(ctx, "sent", m.last())
	return err
}

// Refused drops a message that the receiver will never take. The next one says how many notices it had.
func (n *Notices) Refused(ctx context.Context, m *Digest) error {
	_, err := n.done(ctx, "refused", m.last())
	return err
}

// Waiting returns what waits, and changes nothing.
func (n *Notices) Waiting(ctx context.Context) (Backlog, error) {
	raw, err := n.call(ctx, "take", never.Milliseconds(), MaxWaiting+1, 0, 0)
	if err != nil || len(raw) < 2 {
		return Backlog{}, err
	}
	waiting, _ := raw[0].(int64)
	ms, _ := raw[1].(int64)
	return Backlog{waiting, time.Duration(ms) * time.Millisecond}, nil
}

func (m *Digest) last() int64 { return m.Notices[len(m.Notices)-1].Seq }

func (n *Notices) done(ctx context.Context, does string, args ...any) (bool, error) {
	raw, err := n.call(ctx, does, args...)
	return err == nil && len(raw) == 1 && raw[0] == int64(1), err
}

func (n *Notices) call(ctx context.Context, does string, args ...any) ([]any, error) {
	return n.shard.Eval(ctx, lua.Notice, n.shard.NoticeKeys(), append([]any{does, keep.Milliseconds()}, args...), 0)
}

// cut shortens a text to so many bytes, at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
