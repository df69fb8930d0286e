package reservation

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// maxListText is the most bytes that an entry of a list may have.
const maxListText = 512

// ListEntry is one entry of a named list, in the canonical form that all edges
// give it.
type ListEntry struct {
	// Kind is what Value is: any, buyer, phone, address, device; or ip.
	Kind string
	// Value is empty for ip, else up to 512 bytes.
	Value string
	// Prefix is valid for ip only; IPv4 is not wrapped in IPv6.
	Prefix netip.Prefix
}

// check says what is wrong with an entry that nobody could ever be found by.
func (e ListEntry) check() error {
	switch {
	case e.Kind == "ip" && !e.Prefix.IsValid():
		return errors.New("an entry of kind ip needs a prefix")
	case e.Kind == "ip" && e.Prefix != e.Prefix.Masked(), e.Kind == "ip" && e.Prefix.Addr().Is4In6():
		return fmt.Errorf("%v is not in its canonical form", e.Prefix)
	case e.Kind == "ip":
		return nil
	case e.Kind == "" || len(e.Kind) > 32:
		return fmt.Errorf("%q is no kind of entry", e.Kind)
	case e.Value == "" || len(e.Value) > maxListText:
		return fmt.Errorf("an entry has 1 to %d bytes, not %d", maxListText, len(e.Value))
	}
	return nil
}

// form is the kind of an entry, for ip with the length of the prefix: an edge
// looks an address up once for each length that the list has.
func (e ListEntry) form() string {
	if e.Kind != "ip" {
		return e.Kind
	}
	return prefixFamily(e.Prefix) + strconv.Itoa(e.Prefix.Bits())
}

func prefixFamily(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "ip4/"
	}
	return "ip6/"
}

func (e ListEntry) key(s *Secret) listKey {
	if e.Kind == "ip" {
		return s.listPrefix(e.Prefix)
	}
	return s.listText(e.Kind, e.Value)
}

// listKey is the keyed hash of an entry: what Identity gives for the kind
// "list <form>". Alike values of a list and of a limit have nothing in common.
type listKey = [16]byte

// listPart is the number of the set that a key lies in.
func listPart(k *listKey) int { return int(k[0])<<2 | int(k[1])>>6 }

func (s *Secret) listText(kind, value string) listKey {
	var room [hmacRoom]byte
	b := append(append(append(room[:sha256.BlockSize], "list "...), kind...), 0)
	return s.hmac(append(b, value...))
}

// listPrefix hashes the bytes of the prefix's address.
func (s *Secret) listPrefix(p netip.Prefix) listKey {
	var room [hmacRoom]byte
	b := append(append(room[:sha256.BlockSize], "list "...), prefixFamily(p)...)
	b = append(strconv.AppendInt(b, int64(p.Bits()), 10), 0)
	if p.Addr().Is4() {
		a := p.Addr().As4()
		return s.hmac(append(b, a[:]...))
	}
	a := p.Addr().As16()
	return s.hmac(append(b, a[:]...))
}

// hmacRoom is enough for a block, the longest form and the longest value.
const hmacRoom = sha256.BlockSize + 5 + 32 + 1 + maxListText

// hmac is HMAC-SHA-256 (RFC 2104), 128 bits of it, of what follows the first block
// of b. It is written out because every attempt asks for it: unlike that of
// crypto/hmac, none of its memory is on the heap.
func (s *Secret) hmac(b []byte) listKey {
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
	return listKey(sum[:16])
}

// listPrint tells a secret from another one, and nothing else about it.
func (s *Secret) listPrint() string { return s.Identity("list print", "") }
