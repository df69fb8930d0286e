package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
)

// maxHarmless bounds the hashes that an edge remembers, 64 bytes each.
const maxHarmless = 8192

// persisted knows the documents of hashes, as far as a scope must: those that are
// registered, and which ones have no field that makes an attempt. What it does not know
// costs a client one more request, in which it sends the document.
type persisted struct {
	registered map[string]string

	mu sync.RWMutex
	// harmless says of the documents that have none of the fields whether they mutate.
	harmless map[[sha256.Size]byte]bool
}

// register takes over documents by their hash.
func (p *persisted) register(documents map[string]string) error {
	for hash, document := range documents {
		if document == "" {
			return fmt.Errorf("persisted: the operation %.80q has no document", hash)
		}
	}
	p.registered = documents
	return nil
}

// areRegistered reports whether the shop has documents of its own.
func (p *persisted) areRegistered() bool { return len(p.registered) > 0 }

// matches reports whether a document is the one with that hash. A registered document is
// known to the shop by its hash, so that another document with it is not believed.
func (p *persisted) matches(hash, document string) bool {
	if registered, ok := p.registered[hash]; ok {
		return registered == document
	}
	sum := sha256.Sum256([]byte(document))
	return hash == hex.EncodeToString(sum[:])
}

// document returns a registered document.
func (p *persisted) document(hash string) (string, bool) {
	document, ok := p.registered[hash]
	return document, ok
}

// remember remembers that the document with that hash, which was seen, is harmless.
func (p *persisted) remember(hash string, mutates bool) {
	key, ok := keyOf(hash)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.harmless == nil {
		p.harmless = make(map[[sha256.Size]byte]bool)
	}
	if len(p.harmless) >= maxHarmless { // any one: its client sends the document again
		for old := range p.harmless {
			delete(p.harmless, old)
			break
		}
	}
	p.harmless[key] = mutates
}

func (p *persisted) isHarmless(hash string) (mutates, harmless bool) {
	key, ok := keyOf(hash)
	if !ok {
		return false, false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	mutates, harmless = p.harmless[key]
	return mutates, harmless
}

// keyOf reads a SHA-256, in lower case as its document's is written.
func keyOf(hash string) (key [sha256.Size]byte, ok bool) {
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != hash {
		return key, false
	}
	return [sha256.Size]byte(raw), true
}
