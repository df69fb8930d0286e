package journal

import "strings"

// Sold is how many units the movements of the entry have sold: those of new holds, and of
// orders whose hold was lost.
func (e *entry) Sold() (units int64) {
	for i := range e.Movements {
		if m := &e.Movements[i]; effects[m.kind].Begins {
			units += unitsOf(m.lines)
		}
	}
	return units
}

// unitsOf sums the units of "cell quantity cell quantity …".
func unitsOf(lines string) (units int64) {
	for i := 0; lines != ""; i++ {
		var word string
		word, lines, _ = strings.Cut(lines, " ")
		if i%2 == 0 {
			continue
		}
		n := int64(0)
		for _, digit := range []byte(strings.TrimPrefix(word, "-")) {
			n = 10*n + int64(digit-'0')
		}
		units += n
	}
	return units
}
