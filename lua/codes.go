package lua

// Code is the first word of an operation's reply.
type Code string

// The codes, in the order in which the operations' files give them.
const (
	OK           Code = "ok"
	Gone         Code = "gone"          // released before it was reserved; Redis lacks a write that it had
	StaleVersion Code = "version"       // the caller knows another version of the sale
	Bound        Code = "bound"         // the key or ref belongs to another reservation
	Late         Code = "late"          // after not_after: the caller has given up; the caller knows movements that are lost
	NoSale       Code = "no_sale"       // nothing is known of this sale
	NotStarted   Code = "not_started"   // before the window, or a draft
	Paused       Code = "paused"        //
	Ended        Code = "ended"         // after the window
	Closed       Code = "closed"        //
	Window       Code = "window"        // a limit's window is not the current one
	LimitReached Code = "limit"         // a limit is full
	Pending      Code = "pending"       // a limit is full of holds that are not resolved
	Unpaid       Code = "unpaid"        // too many holds are not paid
	Unknown      Code = "unknown"       // no such cell
	SoldOut      Code = "sold_out"      //
	AllHeld      Code = "all_held"      // units may come back
	Conflict     Code = "conflict"      // the state that holds forbids it
	RefundNeeded Code = "refund_needed" // the units are gone
	NotFound     Code = "not_found"     // no such reservation
	TooSoon      Code = "too_soon"      // the shop may still sell it; by the pace it may not go to the shop yet
	AtShop       Code = "at_shop"       // a request of the reservation is still being answered
	QueueFull    Code = "full"          // too many orders wait for the shop, people for units, or edges count
	Folded       Code = "folded"        // the counts of the process were added to others
	KeyReused    Code = "key_reused"    // the same id with other content
	Short        Code = "short"         // not enough available units
	InUse        Code = "in_use"        // units of the cell are sold, held or were added
	TooMany      Code = "too_many"      // more units than a cell may have, or than are left
	Foreign      Code = "foreign"       // the other edges sign with another key
	Lost         Code = "lost"          // the identity secret is gone
	Over         Code = "over"          // a rate has to wait
	Restoring    Code = "restoring"     // the sale is being rebuilt
	NewerSchema  Code = "schema"        // a newer edge has changed the layout
	Fenced       Code = "fenced"        // the server may lack movements
	NoFence      Code = "no_fence"      // the server cannot be fenced, or must not be
	Invalid      Code = "invalid"       // arguments that no edge sends
	NotFenced    Code = "not_fenced"    // there is no fence to end
	NotYourTurn  Code = "not_your_turn" // people wait for the units
	Available    Code = "available"     // units are free, and can be ordered
	TwoEntries   Code = "two"           // the identities belong to two entries
)
