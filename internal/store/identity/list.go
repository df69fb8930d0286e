package identity

import (
	"net/netip"
	"strconv"

	"github.com/stockgate/stockgate/internal/mac"
)

// MaxListText is the maximum length of a list entry in bytes.
const MaxListText = 512

func PrefixFamily(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "ip4/"
	}
	return "ip6/"
}

// ListKey is the keyed hash of a list entry: what Identity gives for the kind "list <form>".
// Equal values of a list and of a limit have unrelated hashes.
type ListKey = [16]byte

func (s *Secret) ListText(kind, value string) ListKey {
	var room [hmacRoom]byte
	b := append(append(append(room[:mac.BlockSize], "list "...), kind...), 0)
	return s.hmac(append(b, value...))
}

// ListPrefix hashes the bytes of the prefix's address.
func (s *Secret) ListPrefix(p netip.Prefix) ListKey {
	var room [hmacRoom]byte
	b := append(append(room[:mac.BlockSize], "list "...), PrefixFamily(p)...)
	b = append(strconv.AppendInt(b, int64(p.Bits()), 10), 0)
	if p.Addr().Is4() {
		a := p.Addr().As4()
		return s.hmac(append(b, a[:]...))
	}
	a := p.Addr().As16()
	return s.hmac(append(b, a[:]...))
}

// ListPrint distinguishes a secret from another one, and reveals nothing else about it.
func (s *Secret) ListPrint() string { return s.Identity("list print", "") }
