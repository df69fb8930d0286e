package challenge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/ipaddr"
	"github.com/stockgate/stockgate/internal/mac"
)

// version begins each task. It stands for all that is fixed about the format.
const version = "1"

// TaskKey makes and recognises tasks. Edges with the same key accept each other's.
type TaskKey struct{ secret [sha256.Size]byte }

// NewKey makes a key of a secret that all edges have.
func NewKey(secret [sha256.Size]byte) TaskKey { return TaskKey{secret} }

// TaskScope is what a task is bound to. Its solutions are not accepted elsewhere.
type TaskScope struct {
	// Gate and Sale are where the attempt is made; an empty Sale is none.
	Gate, Sale string
	// Address is the client's. Of an IPv6 address the first 64 bits count: a client
	// usually has the whole network.
	Address string
}

// seedSize makes it infeasible to guess the seed of a task that was not issued.
const seedSize = 16

type seed [seedSize]byte

// task is one task: how many bits of work, in which minute, for which scope.
type task struct {
	minute int64 // since 1970
	bits   int
	seed   seed
}

// minuteOf is the minute of a moment.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// task makes the only task of a scope with this many bits in a minute.
func (k *TaskKey) task(s TaskScope, minute int64, bits int) task {
	return task{minute, bits, k.seed(s, minute, bits)}
}

// seed is an HMAC-SHA-256, cut to seedSize. Each part begins with its length.
func (k *TaskKey) seed(s TaskScope, minute int64, bits int) seed {
	var room [512]byte
	b := append(room[:mac.BlockSize], version...)
	b = binary.BigEndian.AppendUint64(b, uint64(minute))
	b = append(b, byte(bits))
	b = appendPart(appendPart(b, s.Gate), s.Sale)
	b = appendNetwork(b, s.Address)
	whole := mac.Sum(&k.secret, b)
	return seed(whole[:seedSize])
}

func appendPart(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// appendNetwork appends what counts of an address.
func appendNetwork(b []byte, address string) []byte {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return append(b, address...)
	}
	if ip = ipaddr.Client(ip); ip.Is4() {
		four := ip.As4()
		return append(b, four[:]...)
	}
	sixteen := ip.As16()
	return append(b, sixteen[:8]...)
}

// is compares seeds in constant time.
func (s *seed) is(other *seed) bool { return hmac.Equal(s[:], other[:]) }

// append writes a task as clients get it: version, minute, bits and seed.
func (t *task) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, version+"."...), t.minute, 10)
	b = strconv.AppendInt(append(b, '.'), int64(t.bits), 10)
	return base64.RawURLEncoding.AppendEncode(append(b, '.'), t.seed[:])
}
