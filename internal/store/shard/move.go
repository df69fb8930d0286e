package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// movedError says that the sale sells elsewhere, or is on its way there.
type movedError struct{}

func (movedError) Error() string {
	return "the stock has been moved, or a move has frozen it: `caddy stockgate doctor` says where it is and what to do"
}

// Is treats the error as an unknown layout: nothing has changed.
func (movedError) Is(target error) bool { return target == ErrNewerSchema }

// ErrMoved says that the stock is frozen here. It is an ErrNewerSchema.
var ErrMoved error = movedError{}

// NewerSchema is the error of a layout that this edge does not know.
func NewerSchema(schema int64) error {
	if schema == lua.FrozenSchema {
		return ErrMoved
	}
	return ErrNewerSchema
}

// MoveStage is how far a move is.
type MoveStage string

// The stages of a move. At its source it is Leaving until all is copied, and then Left; or it is given up, and Staying until
// the stock may sell again, and then Stays. At its destination it is Coming until the copies may sell, and then Came.
const (
	Leaving MoveStage = "leaving"
	Left    MoveStage = "left"
	Staying MoveStage = "staying"
	Stays   MoveStage = "stays"
	Coming  MoveStage = "coming"
	Came    MoveStage = "came"
)

// MoveNote is kept in both Redis servers of a move.
type MoveNote struct {
	ID    string    `json:"id"`
	Stage MoveStage `json:"stage"`
	// Where it goes, or comes from: an address or a directory.
	Where string    `json:"where"`
	Came  string    `json:"came,omitempty"` // the id of the move that had brought the stock to the source
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

func (s *Client) moveKey() string { return s.prefix + ":move" }

// Move returns the note of a move; nil: there is none.
func (s *Client) Move(ctx context.Context) (*MoveNote, error) {
	m, err := behind(s.redis).HGetAll(ctx, s.moveKey()).Result()
	if err != nil || len(m) == 0 {
		return nil, Explain(err)
	}
	ms, _ := strconv.ParseInt(m["at"], 10, 64)
	return &MoveNote{m["id"], MoveStage(m["stage"]), m["where"], m["came"], m["by"], time.UnixMilli(ms)}, nil
}

// CheckMove returns an ErrMoved unless the stock is here.
func (s *Client) CheckMove(ctx context.Context) error {
	switch m, err := s.Move(ctx); {
	case err != nil:
		return err
	case m == nil || m.Stage == Came || m.Stage == Stays:
		return nil
	case m.Stage == Left:
		return fmt.Errorf("%w: it has left for %s", ErrMoved, m.Where)
	case m.Stage == Coming:
		return fmt.Errorf("%w: it has not come from %s yet", ErrMoved, m.Where)
	default:
		return fmt.Errorf("%w: it has not left for %s yet", ErrMoved, m.Where)
	}
}

// NoteMove notes a move.
func (s *Client) NoteMove(ctx context.Context, m *MoveNote) error {
	return Explain(behind(s.redis).HSet(ctx, s.moveKey(), "id", m.ID, "stage", string(m.Stage), "where", m.Where, "came", m.Came, "by", m.By, "at", m.At.UnixMilli()).Err())
}

// PassMove changes the stage of a move, and no other move. It returns an ErrChanged if the move is not, or does not stay,
// at the stage at which it was: a command that Redis was slow to take has no effect any more then.
func (s *Client) PassMove(ctx context.Context, id string, was, next MoveStage) error {
	err := behind(s.redis).Watch(ctx, func(tx *redis.Tx) error {
		has, err := tx.HMGet(ctx, s.moveKey(), "id", "stage").Result()
		if err != nil {
			return err
		}
		if has[0] != id || has[1] != string(was) {
			return ErrChanged
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.HSet(ctx, s.moveKey(), "stage", string(next))
			return nil
		})
		return err
	}, s.moveKey())
	switch {
	case errors.Is(err, ErrChanged), errors.Is(err, redis.TxFailedErr):
		return fmt.Errorf("%w: the note of the move", ErrChanged)
	default:
		return Explain(err)
	}
}

// DropMove drops the note of a move.
func (s *Client) DropMove(ctx context.Context) error {
	return Explain(behind(s.redis).Del(ctx, s.moveKey()).Err())
}

// Freeze ends all changes of a sale and returns an ErrRefused if it sells. A sale that is frozen stays so.
func (s *Client) Freeze(ctx context.Context, sale string) error {
	replies, err := s.Run(ctx, sale, Op(lua.Freeze, lua.FrozenSchema))
	switch {
	case errors.Is(err, ErrMoved):
		return nil
	case err != nil:
		return err
	}
	switch r := replies[0]; r.Code() {
	case lua.OK:
		return nil
	case lua.NoSale:
		return ErrNoSale
	default:
		return Refused("sale %s is %s: pause it first, `caddy stockgate sale pause %s`", sale, r.Text(1), sale)
	}
}

// FreezeLists ends all changes of the named lists.
func (s *Client) FreezeLists(ctx context.Context, keys []string) error {
	for _, key := range s.listMetas(keys) {
		was, err := behind(s.redis).HGet(ctx, key, "schema").Int64()
		if err != nil && !errors.Is(err, redis.Nil) { // none counts as 0, as in lua/list.lua
			return Explain(err)
		}
		if was != lua.FrozenSchema {
			if err := behind(s.redis).HSet(ctx, key, "thaws", was, "schema", lua.FrozenSchema).Err(); err != nil {
				return Explain(err)
			}
		}
	}
	return nil
}

// Thaw ends the freeze of sales and lists among keys.
func (s *Client) Thaw(ctx context.Context, keys []string) error {
	metas := s.listMetas(keys)
	for _, key := range keys {
		if strings.HasPrefix(key, s.prefix+":{") && strings.HasSuffix(key, "}:meta") {
			metas = append(metas, key)
		}
	}
	for _, key := range metas {
		was, err := behind(s.redis).HGet(ctx, key, "thaws").Result()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			return Explain(err)
		}
		pipe := behind(s.redis).TxPipeline()
		pipe.HSet(ctx, key, "schema", was)
		pipe.HDel(ctx, key, "thaws")
		if _, err := pipe.Exec(ctx); err != nil {
			return Explain(err)
		}
	}
	return nil
}

// listMetas are the keys that name the last changes of lists.
func (s *Client) listMetas(keys []string) []string {
	begin := strings.TrimSuffix(s.ListKey("", ""), "}:")
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !strings.HasPrefix(key, begin) || !strings.HasSuffix(key, "}:meta") })
}

// OtherEdges returns the edges that sell, or have sold until a minute ago, beside one.
func (s *Client) OtherEdges(ctx context.Context, sales []string, own string) ([]string, error) {
	const stopped = 60_000 // ms, as in lua/fence.lua
	var others []string
	for _, id := range sales {
		heard, err := behind(s.redis).HGetAll(ctx, s.FenceKeys(id)[EdgesKey]).Result()
		if err != nil {
			return nil, Explain(err)
		}
		at, newest := make(map[string]int64), int64(0)
		for name, ms := range heard {
			at[name], _ = strconv.ParseInt(ms, 10, 64)
			newest = max(newest, at[name])
		}
		for name, ms := range at {
			if name != own && ms+stopped >= newest && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others)
	return others, nil
}

// ServerTime is Redis's own time.
func (s *Client) ServerTime(ctx context.Context) (time.Time, error) {
	at, err := behind(s.redis).Time(ctx).Result()
	return at, Explain(err)
}
