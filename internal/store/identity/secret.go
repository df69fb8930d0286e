package identity

import (
	"encoding/base64"

	"github.com/stockgate/stockgate/internal/mac"
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
const identityRoom = mac.BlockSize + 320

// begin appends an empty block and the kind of what is hashed. The value follows.
func (s *Secret) begin(b []byte, kind string) []byte {
	var block [mac.BlockSize]byte
	return append(append(append(b, block[:]...), kind...), 0)
}

// hashText is the hash of b, which begin has started, as text after a prefix.
func (s *Secret) hashText(prefix string, b []byte) string {
	var room [32]byte
	return string(s.appendHash(append(room[:0], prefix...), b))
}

// hashLength is the length of a hash as text.
const hashLength = (16*8 + 5) / 6

// appendHash appends the hash of b, which begin has started, as text.
func (s *Secret) appendHash(to, b []byte) []byte {
	hash := s.hmac(b)
	return base64.RawURLEncoding.AppendEncode(to, hash[:])
}

// hmacRoom is enough for a block, the longest form and the longest value.
const hmacRoom = mac.BlockSize + 5 + 32 + 1 + MaxListText

// hmac is HMAC-SHA-256, cut to 128 bits, of what follows the first block of b.
func (s *Secret) hmac(b []byte) ListKey {
	sum := mac.Sum((*[32]byte)(s), b)
	return ListKey(sum[:16])
}

// Derive returns a key for another use, which reveals nothing about the secret or other keys.
func (s *Secret) Derive(use string) [32]byte {
	var room [identityRoom]byte
	return mac.Sum((*[32]byte)(s), append(s.begin(room[:0], "derive"), use...))
}

// Ticket is the keyed hash by which an edge recognises a reference to a reservation that it
// gave to its buyer.
func (s *Secret) Ticket(sale, id string) [16]byte {
	var room [identityRoom]byte
	return s.hmac(append(append(append(s.begin(room[:0], "ticket"), id...), 0), sale...))
}
