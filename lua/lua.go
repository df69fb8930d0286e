// Package lua holds what runs inside Redis: one file per operation, put together
// into scripts, and the words with which they answer.
package lua

import (
	_ "embed"
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
const Schema = 4

//go:embed shard.lua
var shard string

//go:embed asked.lua
var asked string

//go:embed changes.lua
var changes string

//go:embed bindings.lua
var bindings string

//go:embed unpaid.lua
var unpaid string

//go:embed queue.lua
var queue string

//go:embed queuetimes.lua
var queueTimes string

//go:embed anew.lua
var anew string

//go:embed waits.lua
var waits string

//go:embed turn.lua
var turn string

//go:embed send.lua
var send string

//go:embed again.lua
var again string

//go:embed rejoin.lua
var rejoin string

//go:embed yield.lua
var yield string

//go:embed orphans.lua
var orphans string

//go:embed leave.lua
var leave string

//go:embed line.lua
var line string

//go:embed place.lua
var place string

//go:embed states.lua
var states string

//go:embed flush.lua
var flush string

//go:embed dryrun.lua
var dryrun string

//go:embed dispatch.lua
var dispatch string

//go:embed reserve.lua
var reserve string

//go:embed confirm.lua
var confirm string

//go:embed release.lua
var release string

//go:embed doubt.lua
var doubt string

//go:embed acknowledge.lua
var acknowledge string

//go:embed outbox.lua
var outbox string

//go:embed mirror.lua
var mirror string

//go:embed sent.lua
var sent string

//go:embed examine.lua
var examine string

//go:embed repair.lua
var repair string

//go:embed expire.lua
var expire string

//go:embed free.lua
var free string

//go:embed lookup.lua
var lookup string

//go:embed extend.lua
var extend string

//go:embed return.lua
var giveBack string

//go:embed probe.lua
var probe string

//go:embed swap.lua
var swap string

//go:embed sold.lua
var sold string

//go:embed probed.lua
var probed string

//go:embed sweep.lua
var sweep string

//go:embed lapse.lua
var lapse string

//go:embed forget.lua
var forget string

//go:embed delete.lua
var deleting string

//go:embed align.lua
var align string

//go:embed adjust.lua
var adjust string

//go:embed apply.lua
var apply string

//go:embed movein.lua
var movein string

//go:embed status.lua
var status string

//go:embed list.lua
var list string

//go:embed enroll.lua
var enroll string

//go:embed rekey.lua
var rekey string

//go:embed lease.lua
var lease string

//go:embed answer.lua
var answer string

//go:embed rate.lua
var rate string

//go:embed trim.lua
var trim string

//go:embed renew.lua
var renew string

//go:embed restore.lua
var restore string

//go:embed rebuilt.lua
var rebuilt string

//go:embed merge.lua
var merge string

//go:embed replay.lua
var replay string

//go:embed fence.lua
var fence string

// Script is one text that Redis runs.
type Script struct {
	// Name is that of its field in Scripts, in lower case, as operators know it.
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
	// Claim takes stock: reserve. A full Redis refuses to start it.
	Claim Script
	// Manage changes a sale: adjust, apply, status, repair, align, movein; and swap, which holds
	// stock. A full Redis refuses to start it.
	Manage Script
	// Settle ends what has begun: confirm, sold, release, doubt, expire, return, extend, free,
	// probe, probed, sweep, lapse, forget, merge, rebuilt, acknowledge, outbox, sent, mirror and
	// delete; of the queue turn, send, again, rejoin, yield, orphans, leave and line. And it
	// reads: lookup, examine, place. It runs on a full Redis too: it gives memory and stock
	// back, or adds little to what is there.
	Settle Script
	// List changes a named list. A full Redis refuses to start it.
	List Script
	// Enroll agrees on the identity secret and the signing key.
	Enroll Script
	// Rekey registers another signing key in the place of a lost one.
	Rekey Script
	// Rate counts attempts for shared rates. It touches no shard.
	Rate Script
	// Lease gives a name to one caller at a time. It touches no shard. A full Redis refuses to
	// start it.
	Lease Script
	// Answer keeps the shop's answer to an order that has waited. It touches no shard. A full Redis
	// refuses to start it.
	Answer Script
	// Trim drops old entries of a journal. It gives memory back, so it runs on a full
	// Redis too.
	Trim Script
	// Renew begins another life of a shard, and Restore fills it. A full Redis refuses to
	// start them.
	Renew, Restore Script
	// Fence keeps an edge's lease, and makes a server that lacks movements get them again.
	// It runs on a full Redis too: without it nothing is sold or settled.
	Fence Script
}

// All returns the scripts in the order of the fields.
func (s *Scripts) All() []Script {
	return []Script{s.Claim, s.Manage, s.Settle, s.List, s.Enroll, s.Rekey, s.Rate, s.Lease, s.Answer, s.Trim, s.Renew, s.Restore, s.Fence}
}

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
