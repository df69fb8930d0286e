// Package terminal decides what output is for people: only on a terminal it has colour and
// progress, and colour only without NO_COLOR (https://no-color.org). What goes into a pipe or a
// file is the same text without them.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Is tells whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Style is how a text looks.
type Style string

// The styles, as parameters of the control sequence SGR.
const (
	Good   Style = "32" // green
	Warn   Style = "33" // yellow
	Bad    Style = "31" // red
	Strong Style = "1"
	Quiet  Style = "2"
)

// Paint returns the text in a style where out shows colour, else the text as it is. Line ends
// are not painted.
func Paint(out io.Writer, style Style, text string) string {
	if text == "" || !Is(out) || os.Getenv("NO_COLOR") != "" || dumb() {
		return text
	}
	body := strings.TrimRight(text, "\n")
	return "\x1b[" + string(style) + "m" + body + "\x1b[0m" + text[len(body):]
}

// dumb tells whether the terminal knows no control sequences.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// interval is how often progress is written: often enough to be seen moving.
const interval = 500 * time.Millisecond

// Progress is a line that says what goes on, until Done removes it.
type Progress struct {
	end  chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// Show writes what goes on to out, with the time that has passed, where out is a terminal;
// elsewhere it writes nothing. say is asked for each line; a caller that knows no more than
// what goes on gives the same text each time. The caller must call Done before it writes to out.
func Show(out io.Writer, say func() string) *Progress {
	p := &Progress{end: make(chan struct{})}
	if !Is(out) || dumb() {
		return p
	}
	start := time.Now()
	line := func() {
		fmt.Fprintf(out, "\r\x1b[K%s %s", say(), Paint(out, Quiet, fmt.Sprintf("%.0f s", time.Since(start).Seconds())))
	}
	line()
	p.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-p.end:
				fmt.Fprint(out, "\r\x1b[K")
				return
			case <-tick.C:
				line()
			}
		}
	})
	return p
}

// Done removes the line. It may be called again.
func (p *Progress) Done() {
	p.once.Do(func() { close(p.end) })
	p.done.Wait()
}
