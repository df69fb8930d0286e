package learn

import (
	"bufio"
	"io"
)

// Shortened reads JSON whose strings are shortened to max bytes.
func Shortened(r io.Reader, max int) io.Reader { return &shortener{r: bufio.NewReader(r), max: max} }

// The bounds of a recording.
const (
	MaxBody  = maxBody
	MaxKept  = maxKept
	MaxEntry = maxEntry
)
