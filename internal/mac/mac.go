// Package mac is HMAC-SHA-256 (RFC 2104) for what every attempt needs: unlike crypto/hmac, it
// allocates nothing on the heap.
package mac

import (
	"crypto/sha256"
	"encoding/binary"
)

// BlockSize is how many bytes stand before a message.
const BlockSize = sha256.BlockSize

// Sum returns the MAC of what follows the first BlockSize bytes of b, which it overwrites.
func Sum(key *[32]byte, b []byte) [sha256.Size]byte {
	pad(b, key, 0x36)
	inner := sha256.Sum256(b)
	var outer [BlockSize + sha256.Size]byte
	pad(outer[:], key, 0x5c)
	copy(outer[BlockSize:], inner[:])
	return sha256.Sum256(outer[:])
}

// pad begins b with a block of the byte with, and the key on it.
func pad(b []byte, key *[32]byte, with uint64) {
	b, with = b[:BlockSize], with*0x0101010101010101
	for i := 0; i < len(key); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], with^binary.LittleEndian.Uint64(key[i:]))
		binary.LittleEndian.PutUint64(b[len(key)+i:], with)
	}
}
