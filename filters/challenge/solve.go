package challenge

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
)

// mostStart leaves room for the search below 2^53, where JavaScript's exact integers end.
const mostStart = 1 << 52

// Solve solves a task, as clients do: 2^bits hashes on average. It returns what the
// client sends with its next attempt, or the error of the context.
//
// The search begins at random. Clients behind one address get the same task, and a solution
// serves one attempt.
func Solve(ctx context.Context, task string) (string, error) {
	parts := strings.Split(task, ".")
	if len(parts) != 4 || parts[0] != version || !canonical(parts[2], 2) {
		return "", errors.New("the challenge is none of version " + version)
	}
	zeros := int(number(parts[2])) - stepsLog
	if zeros > MostBits {
		return "", errors.New("the challenge asks for too much work")
	}
	solved := []byte(task)
	hash := sha256.Sum256(solved)
	for range steps {
		var room [64]byte
		input := append(room[:0], hash[:]...)
		nonce := rand.Uint64N(mostStart)
		for ; ; nonce++ {
			hash = sha256.Sum256(strconv.AppendUint(input, nonce, 10))
			if leads(&hash, zeros) {
				break
			}
			if nonce&0xfff == 0 && ctx.Err() != nil {
				return "", ctx.Err()
			}
		}
		solved = strconv.AppendUint(append(solved, '.'), nonce, 10)
	}
	return string(solved), nil
}
