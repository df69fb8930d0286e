package waitlist

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// As in lua/waitlist.lua: entries in a block, letters of a hash in the index, and its fields.
const width, letters, buckets = 32, 16, 2048

// NewEntry is an entry as the movement has it by which its person has entered. identities is " kind=hash …".
func NewEntry(number, since int64, cell string, quantity int64, buyer, identities string) *Entry {
	return &Entry{Number: number, Since: since, Cell: cell, Quantity: quantity, Buyer: buyer, identities: identities}
}

// OfferID is the id of the hold that is the offer to an entry.
func (e *Entry) OfferID() string { return fmt.Sprintf("w%d.%d", e.Number, e.Since) }

// ReadAll reads the entries of a sale from Redis, by their numbers, and the number of the newest that there ever was;
// 0: people have never waited.
func ReadAll(ctx context.Context, d shard.Data) (entries []*Entry, last int64, err error) {
	v, err := d.Values(ctx, shard.WaitlistKey, "last")
	if err != nil || !v.Has(0) {
		return nil, 0, err
	}
	err = d.Each(ctx, shard.WaitlistKey, "e|*", 100, func(_, text string) error {
		entries = append(entries, parseBlock(text)...)
		return nil
	})
	slices.SortFunc(entries, ByArrival)
	entries = slices.CompactFunc(entries, func(a, b *Entry) bool { return a.Number == b.Number }) // a field may come twice
	return entries, v.Number(0), err
}

// Has reports whether a person with an identity, given by its hash, is on the list of a sale in Redis.
func Has(ctx context.Context, d shard.Data, hash string) (bool, error) {
	v, err := d.Values(ctx, shard.WaitlistKey, bucketOf(hash))
	return err == nil && strings.Contains(v.Text(0), "\n"+hash[:min(len(hash), letters)]+" "), err
}

// Fields calls yield for each field of the hash in which Redis keeps entries, which must be in the order of their
// numbers. counts has what was counted of the list; its Entered is the number of the newest entry that there ever was.
func Fields(entries []*Entry, counts *ListCounts, yield func(field, value string) error) error {
	fields, people := make(map[string][]byte), make(map[string]bool)
	waiting, offered := make(map[string]int64), make(map[string]int64)
	blocks, offers := make(map[int64]int), ""
	for _, e := range entries {
		state, number := "w", (e.Number-1)/width
		if e.Offered {
			state = "o"
			offered[e.Cell]++
			blocks[number]++
		} else {
			waiting[e.Cell]++
		}
		block := "e|" + strconv.FormatInt(number, 10)
		fields[block] = fmt.Appendf(fields[block], "\n%d %s %s %d %d %s%s", e.Number, state, e.Cell, e.Quantity, e.Since, e.Buyer, e.identities)
		for hash := range e.hashes {
			if short := hash[:min(len(hash), letters)]; !people[short] {
				people[short] = true
				bucket := bucketOf(hash)
				fields[bucket] = fmt.Appendf(fields[bucket], "\n%s %d", short, e.Number)
			}
		}
		fields["c|"+e.Cell] = fmt.Appendf(nil, "%d %d", waiting[e.Cell], offered[e.Cell])
	}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		offers += fmt.Sprintf(" %d:%d", block, blocks[block])
	}
	if offers != "" {
		fields["offers"] = []byte(offers)
	}
	for name, n := range map[string]int64{"last": counts.Entered, "live": int64(len(entries))} {
		fields[name] = strconv.AppendInt(nil, n, 10)
	}
	counts.fields(func(name string, n int64) { fields[name] = strconv.AppendInt(nil, n, 10) })
	for field, text := range fields {
		if err := yield(field, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// bucketOf is the field of the index that has a hash.
func bucketOf(hash string) string {
	sum := sha1.Sum([]byte(hash))
	n := int64(binary.BigEndian.Uint32(append([]byte{0}, sum[:3]...)))
	return "i|" + strconv.FormatInt(n%buckets, 10)
}

// Again is what makes an entry again in another life of the sale, whatever the sale is like then. A person who has one
// keeps it.
func (e *Entry) Again() shard.Operation {
	return shard.Op(lua.Enter, e.Cell, e.Quantity, "told", e.Buyer, e.identities, e.Number, e.Since)
}

// Leaves is what takes an entry off the list.
func (e *Entry) Leaves(cause string) shard.Operation {
	return shard.Op(lua.Withdraw, strconv.FormatInt(e.Number, 10), e.Buyer, cause)
}
