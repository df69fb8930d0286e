package command_test

import (
	"flag"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/internal/test/reference"
)

var update = flag.Bool("update", false, "write the generated part of docs/commands.md")

// The commands in docs are as their own help has them: `make docs` writes them.
func TestReference(t *testing.T) {
	stockgate := &cobra.Command{Use: "stockgate"}
	caddycmd.Commands()["stockgate"].CobraFunc(stockgate)
	parts := reference.Parts{"commands": reference.Commands(stockgate)}
	if err := parts.Check(root+"docs/commands.md", *update); err != nil {
		t.Error(err)
	}
}
