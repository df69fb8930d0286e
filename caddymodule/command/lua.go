package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/lua"
)

func luaCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "lua <command>", Short: "Shows the scripts that Redis runs"}
	dump := &cobra.Command{
		Use: "dump [<name> | <sha1>]", Short: "Prints a script, or lists all of them",
		Long: `
Prints a script exactly as this build sends it to Redis, byte for byte, so that
SCRIPT LOAD of it gives the same SHA1. Without an argument it lists the scripts
with their SHA1s, by which Redis names them in SLOWLOG and MONITOR.

No Caddy needs to run. An edge of another version may have other scripts. The
embedded Redis gets the same ones without their first line.`,
		Example: `  $ caddy stockgate lua dump
  $ caddy stockgate lua dump claim | less
  $ caddy stockgate lua dump claim | redis-cli -x SCRIPT LOAD`,
	}
	dump.RunE = func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return perform(cmd, args, listScripts)
		case 1:
			return perform(cmd, args, dumpScript, "name")
		}
		return finish(cmd, usageError{fmt.Errorf("it takes one argument or none: %s", cmd.UseLine())})
	}
	group(cmd, dump)
	return cmd
}

// scriptInfo is a script as --json prints it.
type scriptInfo struct {
	Name   string `json:"name"`
	SHA1   string `json:"sha1"`
	Bytes  int    `json:"bytes"`
	Source string `json:"source,omitempty"` // not in the list
}

func listScripts(c *call) error {
	infos := []scriptInfo{}
	t := c.table("NAME", "SHA1", "BYTES")
	for _, s := range lua.Redis().All() {
		infos = append(infos, scriptInfo{Name: s.Name, SHA1: s.SHA, Bytes: len(s.Source)})
		t.row(s.Name, s.SHA, strconv.Itoa(len(s.Source)))
	}
	if c.flag("json") {
		return json.NewEncoder(c.cmd.OutOrStdout()).Encode(infos)
	}
	return t.print()
}

func dumpScript(c *call) error {
	all := lua.Redis().All()
	i := slices.IndexFunc(all, func(s lua.Script) bool { return s.Name == c.args[0] || s.SHA == strings.ToLower(c.args[0]) })
	if i < 0 {
		return usageError{fmt.Errorf("this build has no script %q: see caddy stockgate lua dump", c.args[0])}
	}
	s := all[i]
	if c.flag("json") {
		return json.NewEncoder(c.cmd.OutOrStdout()).Encode(scriptInfo{Name: s.Name, SHA1: s.SHA, Bytes: len(s.Source), Source: s.Source})
	}
	_, err := fmt.Fprint(c.cmd.OutOrStdout(), s.Source)
	return err
}
