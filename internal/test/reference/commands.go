package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Commands lists the commands below one, by their own help: how each is written, and what it does.
func Commands(top *cobra.Command) string {
	var b strings.Builder
	for _, c := range top.Commands() {
		if len(c.Commands()) == 0 {
			writeCommand(&b, c, "")
			continue
		}
		for _, below := range c.Commands() {
			writeGroup(&b, below, c.Name())
		}
	}
	return b.String()
}

func writeGroup(b *strings.Builder, c *cobra.Command, path string) {
	if len(c.Commands()) == 0 {
		writeCommand(b, c, path)
		return
	}
	for _, below := range c.Commands() {
		writeGroup(b, below, path+" "+c.Name())
	}
}

func writeCommand(b *strings.Builder, c *cobra.Command, path string) {
	fmt.Fprintf(b, "- `%s`: %s.\n", strings.TrimSpace(path+" "+c.Use), strings.TrimSuffix(c.Short, "."))
}
