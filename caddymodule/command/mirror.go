package command

import (
	"fmt"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// showMirror says how the shop's own Redis follows a sale.
func (c *call) showMirror(m *adminapi.SaleMirror) {
	switch {
	case m == nil:
		return
	case !m.Running:
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("mirror: no edge writes the shop's Redis now, the last did at %s\n", adminapi.LocalTime(m.At))))
	case m.Error != "":
		c.printf("%s", c.paint(terminal.Bad, fmt.Sprintf("mirror: the shop's Redis lacks changes since %s: %s\n", adminapi.LocalTime(m.Behind), m.Error)))
	default:
		c.printf("mirror: the shop's Redis follows\n")
	}
	if m.Drift > 0 {
		c.printf("%s", c.paint(terminal.Warn, fmt.Sprintf("mirror: something else has written its keys %d times, the last time at %s: %s had %s, and the mirror had written %s\n",
			m.Drift, adminapi.LocalTime(m.DriftAt), m.DriftKey, m.Had, m.Wrote)))
	}
}
