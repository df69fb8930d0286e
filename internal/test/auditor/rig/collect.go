package rig

import (
	"fmt"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Key is one of a sale's keys.
func Key(sale, name string) string { return "stockgate:{" + sale + ".0}:" + name }

// Collect reads all that Redis keeps of a sale, at one moment.
func Collect(addr, sale string) (*auditor.Shard, error) {
	c, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	// one transaction: nothing may move between two of the keys
	for _, command := range [][]string{
		{"MULTI"},
		{"XRANGE", Key(sale, "journal"), "-", "+"}, {"HGETALL", Key(sale, "cells")}, {"HGETALL", Key(sale, "limits")},
		{"HGETALL", Key(sale, "records")}, {"ZRANGE", Key(sale, "deadlines"), "0", "-1"}, {"ZRANGE", Key(sale, "in_doubt"), "0", "-1"},
		{"ZRANGE", Key(sale, "unbacked"), "0", "-1"}, {"HGETALL", Key(sale, "waitlist")},
	} {
		if _, err := c.Do(command...); err != nil {
			return nil, err
		}
	}
	answer, err := c.Do("EXEC")
	parts, ok := answer.([]any)
	if err != nil || !ok || len(parts) != 8 {
		return nil, fmt.Errorf("read sale %s: %v %v", sale, answer, err)
	}
	s := &auditor.Shard{Sale: sale}
	entries, err := entriesOf(parts[0])
	if err != nil {
		return nil, err
	}
	if s.Movements, err = auditor.ParseEntries(entries); err != nil {
		return nil, err
	}
	for i, into := range []*map[string]string{&s.Cells, &s.Limits, &s.Records} {
		if *into, err = fieldsOf(parts[1+i]); err != nil {
			return nil, err
		}
	}
	for i, into := range []*[]string{&s.Deadlines, &s.InDoubt, &s.Unbacked} {
		if *into, err = texts(parts[4+i]); err != nil {
			return nil, err
		}
	}
	s.Waitlist, err = fieldsOf(parts[7])
	return s, err
}

func fieldsOf(answer any) (map[string]string, error) {
	list, err := texts(answer)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m, nil
}

// entriesOf reads what XRANGE answers: [id [field value …]] ….
func entriesOf(answer any) (entries []auditor.Entry, err error) {
	list, ok := answer.([]any)
	if !ok {
		return nil, fmt.Errorf("a journal is %v", answer)
	}
	for _, x := range list {
		pair, ok := x.([]any)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("an entry is %v", x)
		}
		id, _ := pair[0].(string)
		fields, err := fieldsOf(pair[1])
		if err != nil {
			return nil, err
		}
		if fields["v"] != "1" {
			return nil, fmt.Errorf("entry %s has version %q", id, fields["v"])
		}
		entries = append(entries, auditor.Entry{ID: id, Time: fields["time"], Movements: fields["movements"]})
	}
	return entries, nil
}
