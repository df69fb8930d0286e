package rig

import (
	"strconv"
	"strings"
)

// LastMovement returns a function that asks for the number of the last movement of a sale's journal; false: Redis does
// not answer. It is for one goroutine.
func LastMovement(addr, sale string) func() (seq int64, ok bool) {
	var c *Conn
	return func() (int64, bool) {
		var err error
		if c == nil {
			if c, err = Dial(addr); err != nil {
				c = nil
				return 0, false
			}
		}
		answer, err := c.Do("XREVRANGE", Key(sale, "journal"), "+", "-", "COUNT", "1")
		if err != nil {
			c.Close()
			c = nil
			return 0, false
		}
		entries, err := entriesOf(answer)
		if err != nil || len(entries) != 1 {
			return 0, false
		}
		seq, err := strconv.ParseInt(strings.TrimSuffix(entries[0].ID, "-0"), 10, 64)
		return seq, err == nil
	}
}
