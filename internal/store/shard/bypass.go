package shard

import (
	"context"
	"time"
)

// bypassKept is how long Redis keeps what an edge has told of its bypasses. None is longer than a day.
const bypassKept = 25 * time.Hour

func (s *Client) bypassKey() string { return s.prefix + ":bypasses" }

// NoteBypass tells all edges about a bypass.
func (s *Client) NoteBypass(ctx context.Context, id, text string) error {
	pipe := behind(s.redis).Pipeline() // not MULTI: the rights of an edge do not include it
	pipe.HSet(ctx, s.bypassKey(), id, text)
	pipe.Expire(ctx, s.bypassKey(), bypassKept)
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// DropBypass takes that back.
func (s *Client) DropBypass(ctx context.Context, id string) error {
	return Explain(behind(s.redis).HDel(ctx, s.bypassKey(), id).Err())
}

// Bypasses returns what edges have told, by id.
func (s *Client) Bypasses(ctx context.Context) (map[string]string, error) {
	all, err := behind(s.redis).HGetAll(ctx, s.bypassKey()).Result()
	return all, Explain(err)
}
