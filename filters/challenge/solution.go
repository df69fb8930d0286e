package challenge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strings"
)

const (
	// steps are how many hashes make a solution. Each continues the one before, so that
	// none of them can be used for two solutions.
	steps = 4
	// stepsLog is the logarithm of steps to base 2.
	stepsLog = 2

	// LeastBits and MostBits are the bounds of a task's work.
	LeastBits, MostBits = 4, 28

	// mostNonce is how many digits a nonce has at most: 2^53 has 16.
	mostNonce = 16

	// mostSolution is the length of the longest solution.
	mostSolution = len(version) + 1 + 18 + 1 + 2 + 1 + 22 + steps*(1+mostNonce)
)

// solution is what a client sends: the task and a nonce for each step.
type solution struct {
	task
	text   string // of the task
	nonces [steps]string
}

// parse reads `<task>.<nonce>.<nonce>.<nonce>.<nonce>`. false: it has another form.
func parse(text string) (s solution, ok bool) {
	if len(text) > mostSolution {
		return s, false
	}
	rest, ok := strings.CutPrefix(text, version+".")
	if !ok {
		return s, false
	}
	var minute, hard, seed string
	minute, rest, _ = strings.Cut(rest, ".")
	hard, rest, _ = strings.Cut(rest, ".")
	seed, rest, ok = strings.Cut(rest, ".")
	if !ok || !canonical(minute, 18) || !canonical(hard, 2) || !decodeSeed(&s.seed, seed) {
		return s, false
	}
	s.text = text[:len(text)-len(rest)-1]
	s.minute, s.bits = number(minute), int(number(hard))
	if s.bits < LeastBits || s.bits > MostBits {
		return s, false
	}
	for i := range s.nonces {
		if s.nonces[i], rest, ok = strings.Cut(rest, "."); ok != (i < steps-1) || !digits(s.nonces[i], mostNonce) {
			return s, false
		}
	}
	return s, true
}

// canonical reports whether a number is in its only permitted form, with at most this many digits.
func canonical(text string, most int) bool {
	return digits(text, most) && (text[0] != '0' || len(text) == 1)
}

func digits(text string, most int) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= most
}

// number reads digits.
func number(text string) (n int64) {
	for i := range len(text) {
		n = 10*n + int64(text[i]-'0')
	}
	return n
}

var strictBase64 = base64.RawURLEncoding.Strict()

func decodeSeed(into *seed, text string) bool {
	var from [22]byte
	if copy(from[:], text) != len(from) || len(text) != len(from) {
		return false
	}
	n, err := strictBase64.Decode(into[:], from[:])
	return err == nil && n == seedSize
}

// works reports whether the nonces solve the task, and returns the hash of the first step,
// which differs between any two solutions that took the full work.
func (s *solution) works() (first [sha256.Size]byte, ok bool) {
	var room [64]byte
	hash := sha256.Sum256(append(room[:0], s.text...))
	for i, nonce := range s.nonces {
		hash = sha256.Sum256(append(append(room[:0], hash[:]...), nonce...))
		if !leads(&hash, s.bits-stepsLog) {
			return first, false
		}
		if i == 0 {
			first = hash
		}
	}
	return first, true
}

// leads reports whether a hash begins with this many zero bits.
func leads(hash *[sha256.Size]byte, zeros int) bool {
	return bits.LeadingZeros64(binary.BigEndian.Uint64(hash[:8])) >= zeros
}
