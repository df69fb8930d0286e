package shard

// All keys are built here. Those of one shard share a hash tag, so that one
// script sees all of them; they contain only prefix, sale and shard.

// shardKeys returns the keys of a sale's shard in the order of lua/shard.lua.
func (s *Client) ShardKeys(sale string) []string {
	return keysUnder(s.Prefix + ":{" + sale + ".0}:")
}

// asideKeys are where each of a shard's keys is set aside while the sale is restored.
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

// Places of the keys that are used outside the scripts.
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

// answerKey has the shop's answer to one reservation's request, answersKey how many
// bytes of answers were ever stored for a sale.
func (s *Client) AnswerKey(sale, id string) string {
	return s.Prefix + ":{" + sale + ".0}:answer:" + id
}

func (s *Client) AnswersKey(sale string) string { return s.Prefix + ":{" + sale + ".0}:answers" }

// salesKey is the set of the ids of all sales.
func (s *Client) SalesKey() string { return s.Prefix + ":sales" }

// secretKey is the hash with which edges agree on their secret.
func (s *Client) SecretKey() string { return s.Prefix + ":secret" }

// rateKey is the bucket of one key of one shared rate. All of them share a hash tag,
// so that one script sees all rates of an attempt; the tag is not that of a shard.
func (s *Client) RateKey(identity string) string { return s.Prefix + ":{rate}:" + identity }

// channel is where notices of changed sales and stock are published.
func (s *Client) Channel() string { return s.Prefix + ":notices" }

// acksChannel has no subscribers, see waitForReplicas.
func (s *Client) acksChannel() string { return s.Prefix + ":acks" }
