// Package reconcile holds what Redis keeps of a sale against the story that its
// movements tell, and puts right what differs.
//
// The story comes from the ledger and from the journal after it; without a ledger from
// the journal alone; and where its beginning is gone, from the reservations that Redis
// keeps. A sale goes on while it is looked at. So what differs at first sight is only a
// suspicion: it is examined again in one call together with the number of the journal's
// newest entry, and compared with the story up to exactly that entry.
package reconcile
