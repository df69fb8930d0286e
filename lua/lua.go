// Package lua holds what runs inside Redis: one file per operation, put together
// into scripts, and the words with which they answer.
package lua

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

// Schema is the newest layout of keys and records that these scripts understand.
// A shard that a newer edge has written is left alone.
//
// 2: records name the counters of unpaid holds that they are in, and KEYS[13] has these. A
// shard of schema 1 becomes one of 2 with the first such record.
//
// 3: KEYS[1] has the shard's terms, see fence.lua. A shard becomes one of 3 with its first term.
//
// 4: records of mode queued wait for the shop, and KEYS[14] to KEYS[17] have them in order, see
// queue.lua. A shard becomes one of 4 with the first order of a gate that has a queue.
//
// 5: holds of mode offer are for people who wait, and KEYS[18] has these, see waitlist.lua. A shard becomes one
// of 5 with the first person who waits.
//
// A script raises a shard to what a record needs (SCHEMA_OF_ in shard.lua), not to the newest that it
// understands: edges of the last version sell on beside newer ones until then, see docs/runbook.md#upgrade.
const Schema = 5

// SaleSchema is the schema of a new sale, which every version in the field understands.
const SaleSchema = 4

// raises are what raises a shard to each schema.
var raises = map[int64]string{
	2: "the first hold that a bound on unpaid holds counts",
	3: "the first term of an edge with a fence",
	4: "the first order of a gate with a queue",
	5: "the first person on a waiting list",
}

// Raises says what raises a shard of a schema to each later one, up to the last.
func Raises(from, last int64) string {
	var all []string
	for n := from + 1; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s gives it schema %d", raises[n], n))
	}
	return strings.Join(all, ", ")
}

// FrozenSchema is the schema of sales that are copied to another Redis: edges of every version leave
// them alone.
const FrozenSchema = 1_000_000

//go:embed *.lua
var files embed.FS

// file is the text of a file.
func file(name string) string {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err) // the table names a file that is not there
	}
	return string(text)
}

// Script is one text that Redis runs.
type Script struct {
	// Name is that of its kind, as operators know it.
	Name string
	// Source is exactly what SCRIPT LOAD gets.
	Source string
	// SHA is the SHA-1 of Source in hexadecimal, with which EVALSHA names the script.
	SHA string
}

// Scripts are the scripts for one kind of server. They are shared: callers do not change them.
type Scripts struct {
	// Embedded says that they are for the in-process server.
	Embedded bool
	all      [kinds]Script
}

// All returns the scripts, reserve's first.
func (s *Scripts) All() []Script { return s.all[:] }

// Of returns the script that runs an operation.
func (s *Scripts) Of(o *Operation) *Script { return &s.all[o.Script] }

// OfNone returns the script for a call without operations, which tells the time and touches nothing.
func (s *Scripts) OfNone() *Script { return &s.all[settle] }

// Redis are the scripts for Redis 7 and Valkey. The first line tells the server which scripts may
// run when its memory is full. They are put together at the first call: most processes are
// commands, which run none.
var Redis = sync.OnceValue(func() *Scripts { return build("#!lua\n", "#!lua flags=allow-oom\n") })

// Embedded are the scripts for the in-process server, which has no memory limit and does not
// know the first line.
var Embedded = sync.OnceValue(func() *Scripts {
	s := build("", "")
	s.Embedded = true
	return s
})
