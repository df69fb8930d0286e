package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// listBody bounds the body of a change in bytes: the longest entries, with their kinds
// and as JSON escapes them.
const listBody = adminapi.ListBatch * (6*list.MaxValue + 32)

func (o *operator) listLists(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	all := adminapi.ListStates{Lists: make([]adminapi.ListState, 0, len(o.app.namedLists().all()))}
	for _, name := range slices.Sorted(maps.Keys(o.app.namedLists().all())) {
		s, err := o.listState(o.app.namedLists().all()[name])
		if err != nil {
			return nil, err
		}
		all.Lists = append(all.Lists, s)
	}
	return all, nil
}

func (o *operator) showList(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	l, err := o.readList(r)
	if err != nil {
		return nil, err
	}
	return o.listState(l)
}

// listState looks at a list.
func (o *operator) listState(l *appList) (s adminapi.ListState, err error) {
	s = adminapi.ListState{Name: l.name, Source: l.source.Source, Path: l.path}
	if l.file != nil {
		s.Entries = int64(l.file.Stats().Entries)
		if err := l.file.Err(); err != nil {
			s.Error = err.Error()
		}
		return s, nil
	}
	s.Entries, err = o.desk.ListCount(o.ctx, l.name)
	return s, err
}

// readList returns the list that the path names.
func (o *operator) readList(r *http.Request) (*appList, error) {
	name := r.PathValue("name")
	if l, ok := o.app.namedLists().all()[name]; ok {
		return l, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(o.app.namedLists().all())), ", ")
	if known == "" {
		known = "none: write `list <name> redis` in the global option stockgate"
	}
	return nil, notFoundError{fmt.Errorf("there is no list %.80q; there are %s", name, known)}
}

// changeList adds entries to a list that is kept in Redis, or removes some. Up to
// 500 are one step in Redis; what an error leaves undone may be asked for again.
func (o *operator) changeList(r *http.Request, op string) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	l, err := o.readList(r)
	if err != nil {
		return nil, err
	}
	if l.file != nil {
		return nil, fmt.Errorf("%w: the list %s is read from the file %s: change the file", reservation.ErrRefused, l.name, l.path)
	}
	entries, err := readEntries(r)
	if err != nil {
		return nil, err
	}
	secret, err := o.desk.Secret()
	if err != nil {
		return nil, err
	}
	change, message := o.desk.ListAdd, "list entries added"
	if op == "remove" {
		change, message = o.desk.ListRemove, "list entries removed"
	}
	n, err := change(o.ctx, secret, l.name, entries)
	if err != nil {
		if n > 0 && errors.Is(err, reservation.ErrRefused) {
			err = fmt.Errorf("%w; %d entries before that were changed", err, n)
		}
		return nil, o.noted(err, message, zap.String("list", l.name), zap.Int("entries", len(entries)))
	}
	// who they are stays out of the log
	o.log.Info(message, zap.String("by", o.by), zap.String("list", l.name), zap.Int("entries", len(entries)), zap.Int("changed", n))
	return adminapi.ListChanged{Name: l.name, Changed: n}, nil
}

// readEntries reads a JSON array of entries, each written as in a file.
func readEntries(r *http.Request) ([]reservation.ListEntry, error) {
	body, err := readBody(r, listBody)
	if err != nil {
		return nil, err
	}
	var texts []string
	if err := json.Unmarshal(body, &texts); err != nil || texts == nil {
		return nil, badInput("the body must be a JSON array of entries, such as [\"192.0.2.0/24\",\"phone:13800138000\"]")
	}
	if len(texts) > adminapi.ListBatch {
		return nil, badInput("one request has at most %d entries, this one has %d: send several", adminapi.ListBatch, len(texts))
	}
	entries := make([]reservation.ListEntry, len(texts))
	for i, text := range texts {
		e, err := list.Parse(text, sale.NormaliseIdentity)
		if err != nil {
			return nil, badInput("entry %d: %w", i+1, err)
		}
		entries[i] = reservation.ListEntry(e)
	}
	return entries, nil
}
