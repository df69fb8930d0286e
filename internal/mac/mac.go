// Package mac is HMAC-SHA-256 (RFC 2104) for what every attempt needs: unlike crypto/hmac, it
// allocates nothing on the heap.
package mac

import "crypto/sha256"

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
func pad(b []byte, key *[32]byte, with byte) {
	for i := range BlockSize {
		b[i] = with
	}
	for i, k := range key {
		b[i] ^= k
	}
}
