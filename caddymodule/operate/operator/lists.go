package operator

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// listBody bounds the body of a change in bytes: the longest entries, with their kinds
// and as JSON escapes them.
const listBody = adminapi.ListBatch * (6*accesslist.MaxValue + 32)

func listLists(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	all := adminapi.ListStates{Lists: make([]adminapi.ListState, 0, len(o.App.NamedLists().All()))}
	for _, name := range slices.Sorted(maps.Keys(o.App.NamedLists().All())) {
		s, err := listState(o, o.App.NamedLists().All()[name])
		if err != nil {
			return nil, err
		}
		all.Lists = append(all.Lists, s)
	}
	return all, nil
}

func showList(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	l, err := readList(o, r)
	if err != nil {
		return nil, err
	}
	return listState(o, l)
}

// listState returns the state of a list.
func listState(o *serve.Operator, l *accesslist.List) (s adminapi.ListState, err error) {
	s = adminapi.ListState{Name: l.Name, Source: l.Source.Source, Path: l.Path}
	if l.File != nil {
		s.Entries = int64(l.File.Stats().Entries)
		if err := l.File.Err(); err != nil {
			s.Error = err.Error()
		}
		return s, nil
	}
	s.Entries, err = l.Count(o.Ctx, o.Runtime)
	return s, err
}

// readList returns the list that the path names.
func readList(o *serve.Operator, r *http.Request) (*accesslist.List, error) {
	name := r.PathValue("name")
	if l, ok := o.App.NamedLists().All()[name]; ok {
		return l, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(o.App.NamedLists().All())), ", ")
	if known == "" {
		known = "none: write `list <name> redis` in the global option stockgate"
	}
	return nil, serve.NotFound(fmt.Errorf("there is no list %.80q; there are %s", name, known))
}

// changeList adds entries to a list that is kept in Redis, or removes some. Up to
// 500 are one step in Redis; what an error leaves undone may be requested again.
func changeList(o *serve.Operator, r *http.Request, op string) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	l, err := readList(o, r)
	if err != nil {
		return nil, err
	}
	if l.File != nil {
		return nil, fmt.Errorf("%w: the list %s is read from the file %s: change the file", shard.ErrRefused, l.Name, l.Path)
	}
	rules, err := o.App.IdentityRules()
	if err != nil {
		return nil, err
	}
	entries, err := readEntries(r, rules)
	if err != nil {
		return nil, err
	}
	message := "list entries added"
	if op == "remove" {
		message = "list entries removed"
	}
	n, err := l.Change(o.Ctx, o.Runtime, op == "remove", entries)
	if err != nil {
		if n > 0 && errors.Is(err, shard.ErrRefused) {
			err = fmt.Errorf("%w; %d entries before that were changed", err, n)
		}
		return nil, o.Noted(err, message, zap.String("list", l.Name), zap.Int("entries", len(entries)))
	}
	// the log does not name buyers
	o.Log.Info(message, zap.String("by", o.By), zap.String("list", l.Name), zap.Int("entries", len(entries)), zap.Int("changed", n))
	return adminapi.ListChanged{Name: l.Name, Changed: n}, nil
}

// readEntries reads a JSON array of entries, each written as in a file.
func readEntries(r *http.Request, rules sale.IdentityRules) (accesslist.Entries, error) {
	texts, err := request.Array(r, listBody, `of entries, such as ["192.0.2.0/24","phone:13800138000"]`)
	if err != nil {
		return nil, err
	}
	if len(texts) > adminapi.ListBatch {
		return nil, request.Bad("one request has at most %d entries, this one has %d: send several", adminapi.ListBatch, len(texts))
	}
	entries, err := accesslist.ParseEntries(texts, rules)
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	return entries, nil
}
