package challenge_test

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// FuzzJudge sends anything. What passes has the form of a solution, is genuine, and was worked for:
// the test looks at each by itself, in the plainest way.
func FuzzJudge(f *testing.F) {
	task := taskOf(noon, keys[0], ann, 6)
	solved := solve(f, task)
	for _, text := range []string{"", solved, task, task + ".1.2.3.4", solved + ".", solved + ".1", strings.Replace(solved, ".", "..", 1),
		strings.ToLower(solved), "1.0.6.AAAAAAAAAAAAAAAAAAAAAA.0.0.0.0", strings.Replace(solved, "1.", "01.", 1), "\x00" + solved} {
		f.Add(text)
	}
	c := asking(easy)
	f.Fuzz(func(t *testing.T, text string) {
		foreseen := c.Foresee(noon, keys, ann, text)
		bits := c.Judge(noon, keys, ann, text)
		if bits != foreseen || bits != 0 && bits != 6 {
			t.Fatalf("%q: %d bits, foreseen %d", text, bits, foreseen)
		}
		parts := strings.Split(text, ".")
		good := len(parts) == 8 && strings.Join(parts[:4], ".") == taskOf(noon, keys[0], ann, 6)
		if good {
			hash := sha256.Sum256([]byte(strings.Join(parts[:4], ".")))
			for _, nonce := range parts[4:] {
				good = good && nonce != "" && len(nonce) <= 16 && strings.Trim(nonce, "0123456789") == ""
				hash = sha256.Sum256(append(hash[:], nonce...))
				good = good && hash[0]>>4 == 0
			}
		}
		// solutions for more bits, and of the minutes around, need the key
		if good != (bits == 0) {
			t.Fatalf("%q: asked for %d bits, and it is good: %t", text, bits, good)
		}
		if bits == 0 {
			if c.Judge(noon, keys, ann, text) == 0 {
				t.Fatalf("%q passed twice", text)
			}
			c = asking(easy) // where nothing is spent
		}
	})
}
