package shard

import (
	"context"
	"strings"
	"time"
)

// conditionsKept is how long Redis keeps what an edge has said of itself. Edges that run say it again before.
const conditionsKept = time.Hour

// NoticeKeys are the keys that lua/notice.lua uses. They share a hash tag of their own.
func (s *Client) NoticeKeys() []string {
	p := s.prefix + ":{notices}:"
	return []string{p + "told", p + "waiting", p + "state"}
}

func (s *Client) conditionsKey() string { return s.prefix + ":{notices}:edges" }

// NoteConditions tells the other edges what an edge says of itself.
func (s *Client) NoteConditions(ctx context.Context, edge, text string) error {
	pipe := behind(s.redis).Pipeline() // not MULTI: the rights of an edge do not include it
	pipe.HSet(ctx, s.conditionsKey(), edge, text)
	pipe.PExpire(ctx, s.conditionsKey(), conditionsKept)
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// DropConditions takes that back, of several edges.
func (s *Client) DropConditions(ctx context.Context, edges ...string) error {
	if len(edges) == 0 {
		return nil
	}
	return Explain(behind(s.redis).HDel(ctx, s.conditionsKey(), edges...).Err())
}

// actsKept is how long Redis keeps who has changed a sale last.
const actsKept = 90 * 24 * time.Hour

func (s *Client) actsKey() string { return s.prefix + ":{notices}:acts" }

// NoteAct notes who has given a sale its status, for notices.
func (s *Client) NoteAct(ctx context.Context, sale, status, by string) error {
	pipe := behind(s.redis).Pipeline()
	pipe.HSet(ctx, s.actsKey(), sale, status+" "+by)
	pipe.PExpire(ctx, s.actsKey(), actsKept)
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// Act returns who has given a sale that status; empty: it is not known.
func (s *Client) Act(ctx context.Context, sale, status string) (by string, err error) {
	acts, err := behind(s.redis).HMGet(ctx, s.actsKey(), sale).Result()
	if err != nil {
		return "", Explain(err)
	}
	was, by, _ := strings.Cut(Fields(acts).Text(0), " ")
	if was != status {
		return "", nil
	}
	return by, nil
}

// Conditions returns what edges have said of themselves, and what operators were told.
func (s *Client) Conditions(ctx context.Context) (edges, told map[string]string, err error) {
	pipe := behind(s.redis).Pipeline()
	said, known := pipe.HGetAll(ctx, s.conditionsKey()), pipe.HGetAll(ctx, s.NoticeKeys()[0])
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, Explain(err)
	}
	return said.Val(), known.Val(), nil
}
