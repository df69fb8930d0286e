package list

import (
	"bytes"
	"errors"
	"hash/maphash"
	"math"
	"math/bits"
)

// bucketBytes is how much of a file shares one bucket: about one or two cache lines, so
// a lookup touches the index once and then reads sequentially.
const bucketBytes = 64

// exact is a set of keys that takes little more memory than the keys themselves:
// they lie one after the other, bucket by bucket, and the index says where each
// bucket begins. It never changes once it is built.
//
// It is built in two passes over the same keys: count all, lay, put all.
type exact struct {
	seed  maphash.Seed
	index []uint32 // where each bucket begins in arena, and where the last one ends
	arena []byte   // keys; the rest of a bucket that is not full is 0
}

var (
	errChanged  = errors.New("the file changed while it was read")
	errTooLarge = errors.New("the list is larger than 4 GiB")
)

// newExact makes an empty set for the keys of a file of so many bytes.
func newExact(fileBytes int64) *exact {
	const mostBuckets = 1 << 23
	buckets := min(max(fileBytes, 0)/bucketBytes+1, mostBuckets)
	return &exact{seed: maphash.MakeSeed(), index: make([]uint32, buckets+1)}
}

func (x *exact) hash(key []byte) uint64 { return maphash.Bytes(x.seed, key) }

// bucket depends on the hash's high bits: buckets are in the order of the hashes.
func (x *exact) bucket(hash uint64) uint64 {
	b, _ := bits.Mul64(hash, uint64(len(x.index)-1))
	return b
}

// count makes room for a key.
func (x *exact) count(key []byte) error {
	size := &x.index[x.bucket(x.hash(key))+1]
	if uint64(*size)+uint64(len(key)) > math.MaxUint32 {
		return errTooLarge
	}
	*size += uint32(len(key))
	return nil
}

// lay ends the first pass.
func (x *exact) lay() error {
	end := uint64(0)
	for i, size := range x.index {
		if end += uint64(size); end > math.MaxUint32 {
			return errTooLarge
		}
		x.index[i] = uint32(end)
	}
	x.arena = make([]byte, end)
	return nil
}

// put adds a key that was counted. It returns false when the key is there already, and
// fails when there is no room, because the key was not counted.
func (x *exact) put(key []byte) (bool, error) {
	b := x.bucket(x.hash(key))
	room := x.arena[x.index[b]:x.index[b+1]]
	for len(room) > 0 {
		n := keyLen(room)
		if n == 0 {
			break
		}
		if bytes.Equal(room[:n], key) {
			return false, nil
		}
		room = room[n:]
	}
	if len(key) > len(room) {
		return false, errChanged
	}
	copy(room, key)
	return true, nil
}

// has reports whether the set has a key with this hash.
func (x *exact) has(hash uint64, key []byte) bool {
	b := x.bucket(hash)
	rest := x.arena[x.index[b]:x.index[b+1]]
	for len(rest) > 0 {
		n := keyLen(rest)
		if n == 0 {
			return false
		}
		if bytes.Equal(rest[:n], key) {
			return true
		}
		rest = rest[n:]
	}
	return false
}

// all calls yield for every key, in the order of their hashes but for those that
// share a bucket.
func (x *exact) all(yield func(key []byte) bool) {
	for b := range len(x.index) - 1 {
		rest := x.arena[x.index[b]:x.index[b+1]]
		for len(rest) > 0 {
			n := keyLen(rest)
			if n == 0 {
				break
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// bytes is the memory that the set takes.
func (x *exact) bytes() int { return len(x.arena) + 4*len(x.index) }
