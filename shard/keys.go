package shard

// All keys are built here. Those of one shard share a hash tag, so that one
// script sees all of them; they contain only prefix, sale and shard.

// ShardKeys returns the keys of a sale's shard in the order of lua/shard.lua.
func (s *Client) ShardKeys(sale string) []string {
	return keysUnder(s.Prefix + ":{" + sale + ".0}:")
}

// PreviousKeys returns the keys under which each of a shard's keys keeps the previous epoch
// while the sale is restored.
func (s *Client) PreviousKeys(sale string) []string {
	return keysUnder(s.Prefix + ":{" + sale + ".0}:aside:")
}

func keysUnder(p string) []string {
	return []string{
		p + "meta", p + "cells", p + "limits", p + "records", p + "deadlines",
		p + "in_doubt", p + "unbacked", p + "tombstones", p + "adjustments", p + "journal",
		p + "bindings", p + "returns", p + "unpaid",
	}
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
)

// AnswerKey is the key of the shop's answer to one reservation's request. AnswersKey counts the
// bytes of all answers that were ever stored for a sale.
func (s *Client) AnswerKey(sale, id string) string {
	return s.Prefix + ":{" + sale + ".0}:answer:" + id
}

func (s *Client) AnswersKey(sale string) string { return s.Prefix + ":{" + sale + ".0}:answers" }

// SalesKey is the set of the ids of all sales.
func (s *Client) SalesKey() string { return s.Prefix + ":sales" }

// SecretKey is the hash by which edges agree on their secret.
func (s *Client) SecretKey() string { return s.Prefix + ":secret" }

// RateKey is the bucket of one key of one shared rate. All buckets share a hash tag, so that
// one script sees all rates of an attempt. It is not the hash tag of a shard.
func (s *Client) RateKey(identity string) string { return s.Prefix + ":{rate}:" + identity }

// Channel is where notices of changed sales and stock are published.
func (s *Client) Channel() string { return s.Prefix + ":notices" }

// acksChannel has no subscribers; see waitForReplicas.
func (s *Client) acksChannel() string { return s.Prefix + ":acks" }
