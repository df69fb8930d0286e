package lists

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/stockgate/stockgate/internal/store/identity"
)

// Entry is one entry of a named list, in the canonical form that all edges give it.
type Entry struct {
	// Kind is what Value is: any, buyer, phone, email, address, device; or ip.
	Kind string
	// Value has up to 512 bytes; it is empty for ip.
	Value string
	// Prefix is valid only for ip. IPv4 is not wrapped in IPv6.
	Prefix netip.Prefix
}

// check returns what is wrong with an entry that no lookup could ever match.
func (e Entry) check() error {
	switch {
	case e.Kind == "ip" && !e.Prefix.IsValid():
		return errors.New("an entry of kind ip needs a prefix")
	case e.Kind == "ip" && e.Prefix != e.Prefix.Masked(), e.Kind == "ip" && e.Prefix.Addr().Is4In6():
		return fmt.Errorf("%v is not in its canonical form", e.Prefix)
	case e.Kind == "ip":
		return nil
	case e.Kind == "" || len(e.Kind) > 32:
		return fmt.Errorf("%q is no kind of entry", e.Kind)
	case e.Value == "" || len(e.Value) > identity.MaxListText:
		return fmt.Errorf("an entry has 1 to %d bytes, not %d", identity.MaxListText, len(e.Value))
	}
	return nil
}

// form is the kind of an entry, for ip with the length of the prefix: an edge looks an address
// up once for each length in the list.
func (e Entry) form() string {
	if e.Kind != "ip" {
		return e.Kind
	}
	return identity.PrefixFamily(e.Prefix) + strconv.Itoa(e.Prefix.Bits())
}

func (e Entry) key(s *identity.Secret) identity.ListKey {
	if e.Kind == "ip" {
		return s.ListPrefix(e.Prefix)
	}
	return s.ListText(e.Kind, e.Value)
}

// listPart is the number of the set that has a key.
func listPart(k *identity.ListKey) int { return int(k[0])<<2 | int(k[1])>>6 }
