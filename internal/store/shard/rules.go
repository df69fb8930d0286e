package shard

import (
	"context"
	"time"
)

// rulesKept is how long Redis keeps by what rules edges tell persons apart. They say it again before.
const rulesKept = 25 * time.Hour

func (s *Client) rulesKey() string { return s.prefix + ":identities" }

// NoteRules tells the other edges by what rules an edge tells persons apart.
func (s *Client) NoteRules(ctx context.Context, edge, rules string) error {
	pipe := behind(s.redis).Pipeline() // not MULTI: the rights of an edge do not include it
	pipe.HSet(ctx, s.rulesKey(), edge, rules)
	pipe.Expire(ctx, s.rulesKey(), rulesKept)
	_, err := pipe.Exec(ctx)
	return Explain(err)
}

// OtherRules returns the edges that sell these sales by other rules than own, with their rules. An edge that has not told
// its rules is not among them.
func (s *Client) OtherRules(ctx context.Context, sales []string, own, rules string) (map[string]string, error) {
	told, err := behind(s.redis).HGetAll(ctx, s.rulesKey()).Result()
	if err != nil || len(told) == 0 {
		return nil, Explain(err)
	}
	edges, err := s.OtherEdges(ctx, sales, own)
	if err != nil {
		return nil, err
	}
	others := make(map[string]string)
	for _, edge := range edges {
		if by, ok := told[edge]; ok && by != rules {
			others[edge] = by
		}
	}
	return others, nil
}
