package lua

// An Operation is what a call asks of Redis. Each is declared once, below: where the code must know of
// what kind an operation is, it reads that here. A test compares the table with the Lua files.
type Operation struct {
	// Name is the word for it in a call, and the name of its file.
	Name string
	// Script runs it. The operations of manage and of settle share a call with others of the same script;
	// every other operation is a script of its own, with keys and arguments of its own.
	Script Kind
	// Reads: it changes nothing.
	Reads bool
	// Lease: its answer counts only while the edge has the lease of the sale, see fence.lua. The rest
	// may be asked again.
	Lease bool
	// Promise: a client, the shop or an operator relies on the answer, so that the edge keeps the
	// operation until it has read it in the journal, and replays it on a server that lacks it.
	Promise bool
	// Attempt: attempts wait for it. It goes with reserve requests, on their connections, and is refused
	// where too many wait. All others settle: no attempt displaces them.
	Attempt bool

	needs    []*Operation // what it runs, which is made too where it is asked for
	queue    bool         // it calls functions of queue.lua also where no order has waited
	waitlist bool         // it calls functions of waitlist.lua also where no person has waited
	lost     bool         // it ends the restoring of a shard, which refuses all others
	judges   bool         // it calls functions of verdicts.lua and instead.lua
	before   []string     // files that only this one and a few others need
	inside   *Operation   // is made with it, in the same block
	ifAsked  bool         // of inside: only where it is asked for
}

// Settles reports whether it goes before attempts that wait.
func (o *Operation) Settles() bool { return !o.Attempt }

// Shared reports whether a call may have it with others.
func (o *Operation) Shared() bool { return o.Script == manage || o.Script == settle }

// Needs are the operations that it runs.
func (o *Operation) Needs() []*Operation { return o.needs }

// RunsWhileRestoring reports whether a shard that is being restored takes it.
func (o *Operation) RunsWhileRestoring() bool { return o.lost }

// Kind is one of the scripts.
type Kind uint8

// The scripts, in the order in which operators see them.
const (
	claim Kind = iota
	manage
	settle
	list
	enroll
	rekey
	rate
	lease
	answer
	counts
	trim
	renew
	restore
	fence
	notice
	kinds
)

// String is the name of the script, as operators know it.
func (k Kind) String() string {
	return [...]string{"claim", "manage", "settle", "list", "enroll", "rekey", "rate", "lease", "answer", "counts", "trim", "renew", "restore", "fence", "notice"}[k]
}

// oom reports whether a full Redis starts the script. Those give memory or stock back, or add little to
// what is there.
func (k Kind) oom() bool { return k == settle || k == trim || k == fence || k == notice }

// operations is the table, in the order of the declarations, which is that in the scripts.
var operations []*Operation

func operation(o Operation) *Operation {
	operations = append(operations, &o)
	return &o
}

// Operations are all operations.
func Operations() []*Operation { return operations }

// Attempts.
var (
	// Reserve holds stock for attempts, or says why not.
	Reserve = operation(Operation{Name: "reserve", Script: claim, Lease: true, Promise: true, Attempt: true})
	// Rate lets attempts pass, or tells them to come later. It touches no shard.
	Rate = operation(Operation{Name: "rate", Script: rate, Attempt: true})
)

// Changes of a sale, for which a full Redis has no memory.
var (
	// Adjust adds units to a cell, or takes available ones away.
	Adjust = operation(Operation{Name: "adjust", Script: manage, Lease: true})
	// Apply loads a sale, or the difference between two sale files.
	Apply = operation(Operation{Name: "apply", Script: manage, Lease: true, before: []string{"open_offers"}})
	// Status opens, pauses or closes a sale.
	Status = operation(Operation{Name: "status", Script: manage, Lease: true, before: []string{"open_offers"}})
	// Repair sets values that a reconciliation has found wrong. It is the only operation of its call.
	Repair = operation(Operation{Name: "repair", Script: manage})
	// Align ends the lead of the shard's clock over Redis's own time.
	Align = operation(Operation{Name: "align", Script: manage, before: []string{"queuetimes"}})
	// Swap reserves in the place of a hold. The promise is that of a reserve request.
	Swap = operation(Operation{Name: "swap", Script: manage, Lease: true, Promise: true, judges: true})
	// Freeze ends all changes of a sale that is copied to another Redis.
	Freeze = operation(Operation{Name: "freeze", Script: manage})
	// Schedule plans an act of a sale for a time.
	Schedule = operation(Operation{Name: "schedule", Script: manage, Lease: true, before: []string{"acts"}})
	// Cancel takes an act back that is planned, or forgets one that failed.
	Cancel = operation(Operation{Name: "cancel", Script: manage, Lease: true, before: []string{"acts"}})
	// Perform does the acts that are due.
	Perform = operation(Operation{Name: "perform", Script: manage, needs: []*Operation{Adjust, Status}, before: []string{"acts"}})
	// MoveIn enters what was bought before the sale came here.
	MoveIn = operation(Operation{Name: "movein", Script: manage})
)

// What ends holds, gives back and keeps order.
var (
	// Confirm marks a hold as sold.
	Confirm = operation(Operation{Name: "confirm", Script: settle, Lease: true, Promise: true})
	// Sold confirms a hold with the lines that the shop's order has.
	Sold = operation(Operation{Name: "sold", Script: settle, Lease: true, Promise: true, needs: []*Operation{Confirm, Return}, inside: Confirm, ifAsked: true})
	// Release gives the units of a hold back.
	Release = operation(Operation{Name: "release", Script: settle, Lease: true, Promise: true})
	// Doubt marks a hold as in doubt.
	Doubt = operation(Operation{Name: "doubt", Script: settle, Lease: true, Promise: true})
	// Expire ends holds whose deadline has passed.
	Expire = operation(Operation{Name: "expire", Script: settle, before: []string{"queuetimes"}})
	// Return takes units of a confirmed reservation back.
	Return = operation(Operation{Name: "return", Script: settle, Lease: true, Promise: true})
	// Extend moves a hold's deadline.
	Extend = operation(Operation{Name: "extend", Script: settle, Lease: true, Promise: true})
	// Free notes that the attempt of a hold was answered: its buyer may repeat the purchase.
	Free = operation(Operation{Name: "free", Script: settle})
	// Lookup finds the reservation to which an attempt's key or ref belongs.
	Lookup = operation(Operation{Name: "lookup", Script: settle, Reads: true, Attempt: true})
	// Probe leases reservations in doubt about which the shop is to be asked now.
	Probe = operation(Operation{Name: "probe", Script: settle})
	// Probed takes in what the shop said about a reservation in doubt.
	Probed = operation(Operation{Name: "probed", Script: settle, Lease: true, needs: []*Operation{Probe, Confirm, Release}, inside: Probe})
	// Sweep drops counters of limits whose window is over.
	Sweep = operation(Operation{Name: "sweep", Script: settle})
	// Lapse drops counters of unpaid holds in which nothing counts.
	Lapse = operation(Operation{Name: "lapse", Script: settle})
	// Forget drops records of reservations that ended long ago.
	Forget = operation(Operation{Name: "forget", Script: settle})
	// Acknowledge notes how far a ledger has the journal.
	Acknowledge = operation(Operation{Name: "acknowledge", Script: settle})
	// Merge merges a reservation of the shard's previous epoch.
	Merge = operation(Operation{Name: "merge", Script: settle, waitlist: true})
	// Rebuilt begins the new epoch of a shard that was restored.
	Rebuilt = operation(Operation{Name: "rebuilt", Script: settle, lost: true, waitlist: true, before: []string{"open_offers"}})
	// Outbox leases the right to send a shard's movements to the outbox's receiver.
	Outbox = operation(Operation{Name: "outbox", Script: settle})
	// Sent notes how far the outbox's receiver has the journal.
	Sent = operation(Operation{Name: "sent", Script: settle})
	// Mirror leases the right to write a shard's numbers into the shop's own Redis.
	Mirror = operation(Operation{Name: "mirror", Script: settle})
	// Examine reads values of a shard by name, all at one moment.
	Examine = operation(Operation{Name: "examine", Script: settle, Reads: true})
	// Delete deletes a closed sale.
	Delete = operation(Operation{Name: "delete", Script: settle})
)

// The queue.
var (
	// Turn tells an edge which orders it may send to the shop now.
	Turn = operation(Operation{Name: "turn", Script: settle, queue: true})
	// Send notes that an edge sends an order whose turn it has.
	Send = operation(Operation{Name: "send", Script: settle, Lease: true, Promise: true, queue: true, before: []string{"anew"}})
	// Again lets an order wait again that the shop has put off.
	Again = operation(Operation{Name: "again", Script: settle, Lease: true, Promise: true, queue: true, before: []string{"anew"}})
	// Rejoin lets an order wait again that Redis may have lost.
	Rejoin = operation(Operation{Name: "rejoin", Script: settle, queue: true})
	// Yield lets another edge send an order.
	Yield = operation(Operation{Name: "yield", Script: settle, queue: true, before: []string{"anew"}})
	// Orphans releases holds that wait and whose order is gone.
	Orphans = operation(Operation{Name: "orphans", Script: settle, queue: true})
	// Leave takes an order out of the line.
	Leave = operation(Operation{Name: "leave", Script: settle, Lease: true, Promise: true, queue: true})
	// Line shows the line of a sale, pauses it, resumes it or drains it.
	Line = operation(Operation{Name: "line", Script: settle, queue: true})
	// Place tells where an order stands.
	Place = operation(Operation{Name: "place", Script: settle, Reads: true, queue: true})
)

// The waiting list.
var (
	// Enter puts a person on the waiting list of a cell.
	Enter = operation(Operation{Name: "enter", Script: manage, Lease: true, Promise: true, Attempt: true, waitlist: true})
	// Offer holds units for the person whose turn it is.
	Offer = operation(Operation{Name: "offer", Script: manage, Lease: true, Promise: true, waitlist: true, judges: true})
	// Offers lets no more offers be made, or lets them go on.
	Offers = operation(Operation{Name: "offers", Script: manage, Lease: true, waitlist: true})
	// Accept reserves in the place of an offer.
	Accept = operation(Operation{Name: "accept", Script: manage, Lease: true, Promise: true, queue: true, waitlist: true, judges: true})
	// Withdraw takes a person off the list.
	Withdraw = operation(Operation{Name: "withdraw", Script: settle, Lease: true, Promise: true, waitlist: true})
)

// Scripts of their own.
var (
	// AddToList adds entries to a named list, or removes some.
	AddToList = operation(Operation{Name: "list", Script: list})
	// Enroll agrees on the identity secret and the signing key.
	Enroll = operation(Operation{Name: "enroll", Script: enroll})
	// Rekey registers another signing key in the place of a lost one.
	Rekey = operation(Operation{Name: "rekey", Script: rekey})
	// Lease gives a name to one caller at a time.
	Lease = operation(Operation{Name: "lease", Script: lease})
	// KeepAnswer keeps the shop's answer to an order that has waited.
	KeepAnswer = operation(Operation{Name: "answer", Script: answer})
	// NoteCounts notes what a process has counted of a sale.
	NoteCounts = operation(Operation{Name: "counts", Script: counts})
	// Trim drops old entries of a journal.
	Trim = operation(Operation{Name: "trim", Script: trim})
	// Renew begins another epoch of a shard.
	Renew = operation(Operation{Name: "renew", Script: renew})
	// Restore fills it.
	Restore = operation(Operation{Name: "restore", Script: restore})
	// Fence keeps an edge's lease, and makes a server that lacks movements get them again.
	Fence = operation(Operation{Name: "fence", Script: fence})
	// Notice notes what operators are told, and what waits to be sent to them.
	Notice = operation(Operation{Name: "notice", Script: notice})
)
