package journal

import "strings"

// A return is one or two movements, as lua/return.lua writes them: `returned` of the
// reservation, and, where its units do not go back on sale, `adjusted` behind it, which takes
// them from the stock. The cause of each begins with the other's id, and a space where more
// follows.

// ReturnID is the id of the return that a movement `returned` belongs to.
func (m *Movement) ReturnID() string { return firstWord(m.Cause) }

// OfReturn reports whether a movement takes from the stock what the movement before it, in the
// same epoch, has returned. It is then not an adjustment of its own.
func (m *Movement) OfReturn(before *Movement) bool {
	return before != nil && before.Kind == "returned" && m.Kind == "adjusted" && m.Seq == before.Seq+1 &&
		m.ID == before.ReturnID() && firstWord(m.Cause) == before.ID
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}
