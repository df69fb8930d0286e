package identity

import (
	"crypto/sha256"
	"encoding/base64"
)

// Secret hashes identities, so that Redis holds no phone number and no address. All edges of
// one Redis share it.
type Secret [32]byte

// Identity returns the keyed hash (HMAC-SHA-256, 128 bits of it) under which an
// identity is counted.
func (s *Secret) Identity(kind, value string) string {
	var room [identityRoom]byte
	return s.hashText("", append(s.begin(room[:0], kind), value...))
}

// identityRoom is enough for a block and the text of nearly every identity.
const identityRoom = sha256.BlockSize + 320

// begin appends an empty block and the kind of what is hashed. The value follows.
func (s *Secret) begin(b []byte, kind string) []byte {
	var block [sha256.BlockSize]byte
	return append(append(append(b, block[:]...), kind...), 0)
}

// hashText is the hash of b, which begin has started, as text after a prefix.
func (s *Secret) hashText(prefix string, b []byte) string {
	hash := s.hmac(b)
	var room [32]byte
	return string(base64.RawURLEncoding.AppendEncode(append(room[:0], prefix...), hash[:]))
}

// hmacRoom is enough for a block, the longest form and the longest value.
const hmacRoom = sha256.BlockSize + 5 + 32 + 1 + MaxListText

// hmac is HMAC-SHA-256 (RFC 2104), cut to 128 bits, of what follows the first block of b. It is
// written out because every attempt needs it: unlike crypto/hmac, it allocates nothing on the
// heap.
func (s *Secret) hmac(b []byte) ListKey {
	for i := range sha256.BlockSize {
		b[i] = 0x36
	}
	for i, k := range s {
		b[i] ^= k
	}
	inner := sha256.Sum256(b)
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		outer[i] = 0x5c
	}
	for i, k := range s {
		outer[i] ^= k
	}
	copy(outer[sha256.BlockSize:], inner[:])
	sum := sha256.Sum256(outer[:])
	return ListKey(sum[:16])
}
