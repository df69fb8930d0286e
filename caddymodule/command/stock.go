package command

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func stockCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "stock <command>", Short: "Changes the stock of an item"}
	add := &cobra.Command{
		Use:   "add <sale> <sku> <units> [--region <region>] [--id <id>]",
		Short: "Adds units to an item, or takes available ones away",
		Long: `
Adds units to an item at once, on top of what the sale's file loads; a negative
number takes units away, as long as they are available.

Every addition has an id, made here unless --id gives one. The same id again
changes nothing: when no answer came, repeat the command with the id it names.`,
		Example: `  $ caddy stockgate stock add double11 20002001 50
  $ caddy stockgate stock add double11 20002001 -5
  $ caddy stockgate stock add double11 20002002 50 --region beijing`,
	}
	add.Flags().String("region", "", "Region whose stock changes")
	add.Flags().String("id", "", "Id of the addition (default: a new one)")
	withNegatives(add, action(addStock, "sale", "sku", "units"))
	group(cmd, add, undoStockCommand())
	return cmd
}

// withNegatives makes the RunE of a command among whose arguments may be negative numbers.
func withNegatives(cmd *cobra.Command, run func(*cobra.Command, []string) error) {
	cmd.DisableFlagParsing = true // else -5 is a flag
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.DisableFlagParsing = false
		if err := cmd.ParseFlags(flagsFirst(cmd, args)); err != nil {
			return cmd.FlagErrorFunc()(cmd, err)
		}
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		return run(cmd, cmd.Flags().Args())
	}
}

var negative = regexp.MustCompile(`^-[0-9]+$`)

// flagsFirst reorders arguments so that a negative number is one of them, not a flag.
func flagsFirst(cmd *cobra.Command, args []string) []string {
	cmd.InitDefaultHelpFlag()
	cmd.InheritedFlags() // adds the persistent flags of the commands above
	var flags, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' || negative.MatchString(arg) {
			rest = append(rest, arg)
			continue
		}
		flags = append(flags, arg)
		if takesNext(cmd.Flags(), arg) {
			if i++; i == len(args) {
				return flags // its value is missing: no argument may become its value
			}
			flags = append(flags, args[i])
		}
	}
	return append(append(flags, "--"), rest...)
}

// takesNext reports whether the value of a flag is the argument after it.
func takesNext(known *pflag.FlagSet, arg string) bool {
	var f *pflag.Flag
	if name, long := strings.CutPrefix(arg, "--"); long {
		f = known.Lookup(name) // none with =value
	} else if len(arg) == 2 {
		f = known.ShorthandLookup(arg[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

func addStock(c *call) error {
	sku := c.args[1]
	delta, err := strconv.ParseInt(c.args[2], 10, 64)
	if err != nil || delta == 0 {
		return usageError{fmt.Errorf("%q is no number of units to add, such as 50 or -5", c.args[2])}
	}
	change := adminapi.StockChange{ID: c.text("id"), Delta: delta, Region: c.text("region")}
	if change.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		change.ID = id.String()
	}
	return c.changeStock(sku, change)
}
