package shard

import "strings"

// All keys are built here. Those of one shard share a hash tag, so that one
// script sees all of them; they contain only prefix, sale and shard.

// ShardKeys returns the keys of a sale's shard in the order of lua/shard.lua.
func (s *Client) ShardKeys(sale string) []string {
	return keysUnder(s.prefix + ":{" + sale + ".0}:")
}

// PreviousKeys returns the keys under which each of a shard's keys keeps the previous epoch
// while the sale is restored.
func (s *Client) PreviousKeys(sale string) []string {
	return keysUnder(s.prefix + ":{" + sale + ".0}:previous:")
}

// keyNames are those of a shard's keys, in the order of lua/shard.lua.
var keyNames = [...]string{
	"meta", "cells", "limits", "records", "deadlines", "in_doubt", "unbacked", "tombstones", "adjustments", "journal",
	"bindings", "returns", "unpaid", "line", "orders", "at_shop", "queue", "waitlist",
}

// keysUnder cuts the keys out of one text: each call of a script needs all of them.
func keysUnder(p string) []string {
	long := 0
	for _, name := range keyNames {
		long += len(p) + len(name)
	}
	var all strings.Builder
	all.Grow(long)
	for _, name := range keyNames {
		all.WriteString(p)
		all.WriteString(name)
	}
	text, keys := all.String(), make([]string, len(keyNames))
	for i, name := range keyNames {
		n := len(p) + len(name)
		keys[i], text = text[:n], text[n:]
	}
	return keys
}

// FenceKeys returns the keys of lua/fence.lua: those of the shard, and its own.
func (s *Client) FenceKeys(sale string) []string {
	p := s.prefix + ":{" + sale + ".0}:"
	return append(s.ShardKeys(sale), p+"edges", p+"reports", p+"tail")
}

// ShadowKey is the hash in which dry runs note what the shop has sold of a sale, see
// lua/dryrun.lua.
func (s *Client) ShadowKey(sale string) string { return s.prefix + ":{" + sale + ".0}:shadow" }

// CountsKeys are the keys of lua/counts.lua.
func (s *Client) CountsKeys(sale string) []string {
	p := s.prefix + ":{" + sale + ".0}:"
	return []string{p + keyNames[MetaKey], p + "counts"}
}

// Indexes of the keys that are used outside the scripts.
const (
	MetaKey = iota
	CellsKey
	LimitsKey
	RecordsKey
	DeadlinesKey
	InDoubtKey
	UnbackedKey
	TombstonesKey
	AdjustmentsKey
	JournalKey
	BindingsKey
	ReturnsKey
	UnpaidKey
	LineKey
	OrdersKey
	AtShopKey
	QueueKey
	WaitlistKey
	EdgesKey // the first of those that only lua/fence.lua uses
)

// AnswerKey is the key of the shop's answer to one reservation's request. AnswersKey counts the
// bytes of all answers that were ever stored for a sale.
func (s *Client) AnswerKey(sale, id string) string {
	return s.prefix + ":{" + sale + ".0}:answer:" + id
}

// QueueAnswerKey is the key of the shop's answer to an order that has waited, encrypted.
func (s *Client) QueueAnswerKey(sale, id string) string {
	return s.prefix + ":{" + sale + ".0}:reply:" + id
}

// QueueAnswersKeys are those of lua/answer.lua for one order: its answer, when each answer of the
// sale is dropped, and how many bytes all of them have.
func (s *Client) QueueAnswersKeys(sale, id string) []string {
	p := s.prefix + ":{" + sale + ".0}:"
	return []string{s.QueueAnswerKey(sale, id), p + "replies", p + "replies_size"}
}

func (s *Client) AnswersKey(sale string) string { return s.prefix + ":{" + sale + ".0}:answers" }

// SalesKey is the set of the ids of all sales.
func (s *Client) SalesKey() string { return s.prefix + ":sales" }

// DeletedKey is the hash of the sales that were deleted on purpose, with the epoch of each.
func (s *Client) DeletedKey() string { return s.prefix + ":deleted" }

// ReloadedKey is the hash of the sales that were loaded again after they had been deleted, with
// the epoch that was deleted last.
func (s *Client) ReloadedKey() string { return s.prefix + ":reloaded" }

// LedgersKey is the hash of what ledgers have of sales that Redis has lost.
func (s *Client) LedgersKey() string { return s.prefix + ":ledgers" }

// DrainersKey is the sorted set of the drainers of sales, by when each was last seen to have a lease in
// its ledger.
func (s *Client) DrainersKey() string { return s.prefix + ":drainers" }

// SecretKey is the hash by which edges agree on their secret.
func (s *Client) SecretKey() string { return s.prefix + ":secret" }

// RateKey is the bucket of one key of one shared rate. All buckets share a hash tag, so that
// one script sees all rates of an attempt. It is not the hash tag of a shard.
func (s *Client) RateKey(identity string) string { return s.prefix + ":{rate}:" + identity }

// LeaseKey is the key of a name that one edge has at a time.
func (s *Client) LeaseKey(name string) string { return s.prefix + ":lease:" + name }

// ListKey is a key of a named list. All of a list share a hash tag.
func (s *Client) ListKey(list, part string) string { return s.prefix + ":list:{" + list + "}:" + part }

// Channel is where notices of changed sales and stock are published.
func (s *Client) Channel() string { return s.prefix + ":notices" }

// acksChannel has no subscribers; see waitForReplicas.
func (s *Client) acksChannel() string { return s.prefix + ":acks" }
