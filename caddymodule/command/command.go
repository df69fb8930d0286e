// Package command adds the commands of `caddy stockgate`. They ask the admin API of a
// running Caddy; importing the package registers them, and the modules with them.
package command

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	_ "github.com/stockgate/stockgate/caddymodule" // the modules that run in the server
	"github.com/stockgate/stockgate/caddymodule/operate/capacity"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "stockgate",
		Usage: "<command>",
		Short: "Runs flash sales: loads them, opens them, shows and resolves reservations",
		Long: `
Runs the flash sales of a Caddy that has a stockgate app.

The commands talk to the running Caddy over its admin endpoint, and find it as
Caddy's own commands do: at --address if that is given; otherwise where the
file of --config says; otherwise at the default address. A change is made in
Redis, so that all edges follow it; the log of the Caddy that was asked says who
made it. Every change may be asked for again: it is made once.

Exit status: 0 done; 1 refused, nothing has changed (where a command resolves many
holds: some of them were refused, and it says how many); 2 the command line is wrong;
3 no answer, it is unknown whether a change was made.`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Example = `  $ caddy stockgate sale apply double11.yaml --dry-run
  $ caddy stockgate sale apply double11.yaml
  $ caddy stockgate sale open double11
  $ caddy stockgate sale show double11`
			cmd.Version = version()
			flags := cmd.PersistentFlags()
			flags.String("address", "", "Address of the administration listener, if different from config")
			flags.StringP("config", "c", "", "Configuration file of the running Caddy")
			flags.StringP("adapter", "a", "", "Name of config adapter to apply")
			flags.Bool("json", false, "Print what the API answers")
			cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
				return finish(cmd, usageError{err})
			})
			group(cmd,
				saleCommand(),
				stockCommand(),
				queueCommand(),
				waitlistCommand(),
				holdsCommand(),
				reservationCommand(),
				personCommand(),
				returnsCommand(),
				learnCommand(),
				tryCommand(),
				listCommand(),
				journalCommand(),
				reconcileCommand(),
				ledgerCommand(),
				rebuildCommand(),
				storeCommand(),
				moveCommand(),
				bypassCommand(),
				luaCommand(),
				healthCommand(),
				keyCommand(),
				edgeCommand(),
				notifyCommand(),
				doctorCommand(),
				reportCommand(),
				rehearseCommand(),
				mistakes(capacity.Command()),
				demoCommand(),
			)
		},
	})
}

// The exit statuses of the commands.
const (
	exitRefused  = 1
	exitUsage    = 2
	exitNoAnswer = 3
)

// usageError is a mistake in the command line. noAnswerError says that Caddy has not answered,
// so that it is unknown what it did. Any other error is a refusal.
type (
	usageError    struct{ error }
	noAnswerError struct{ error }
)

func (e usageError) Unwrap() error    { return e.error }
func (e noAnswerError) Unwrap() error { return e.error }

// group makes cmd a command that only groups others.
func group(cmd *cobra.Command, commands ...*cobra.Command) {
	for _, c := range commands {
		c.DisableFlagsInUseLine = true // they are written out
		cmd.AddCommand(c)
	}
	cmd.Args = cobra.ArbitraryArgs // otherwise cobra prints its help and succeeds
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names := make([]string, len(commands))
		for i, c := range commands {
			names[i] = c.Name()
		}
		known := strings.Join(names, ", ")
		if len(args) == 0 {
			return finish(cmd, usageError{fmt.Errorf("which command? There are %s; --help tells more", known)})
		}
		if meant := meantBy(cmd, args[0]); meant != "" {
			return finish(cmd, usageError{fmt.Errorf("there is no command %q: did you mean `%s`? There are %s", args[0], meant, known)})
		}
		return finish(cmd, usageError{fmt.Errorf("there is no command %q; there are %s", args[0], known)})
	}
}

// meantBy returns the command that a wrong name probably means: a similar one of the group, or one of that
// name in a group below; empty: none.
func meantBy(group *cobra.Command, name string) string {
	group.SuggestionsMinimumDistance = 2
	for _, similar := range group.SuggestionsFor(name) {
		return group.CommandPath() + " " + similar
	}
	for _, c := range group.Commands() {
		for _, below := range c.Commands() {
			if below.Name() == name {
				return below.CommandPath()
			}
		}
	}
	return ""
}

// action makes the RunE of a command that takes these arguments.
func action(run func(*call) error, args ...string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) != len(args) {
			return finish(cmd, usageError{fmt.Errorf("it takes %s: %s", countOf(args), cmd.UseLine())})
		}
		return perform(cmd, given, run, args...)
	}
}

// perform runs a command, unless an argument or a text flag is given and empty. names are
// those of the arguments; the last one is also that of all that follow.
func perform(cmd *cobra.Command, given []string, run func(*call) error, names ...string) error {
	var mistake error
	if i := slices.Index(given, ""); i >= 0 {
		mistake = usageError{fmt.Errorf("<%s> is empty: %s", names[min(i, len(names)-1)], cmd.UseLine())}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) { // those that are given
		if mistake == nil && isEmpty(f) {
			mistake = usageError{fmt.Errorf("--%s is empty: leave it out, or give it a value", f.Name)}
		}
	})
	if mistake != nil {
		return finish(cmd, mistake)
	}
	return finish(cmd, run(&call{cmd: cmd, args: given}))
}

// isEmpty reports whether a flag has an empty text, as of a variable that is not set: it must
// not count as left out, since a command may do more without it. An empty region is none, as
// in a tally.
func isEmpty(f *pflag.Flag) bool {
	texts := []string{f.Value.String()}
	if several, ok := f.Value.(pflag.SliceValue); ok {
		texts = several.GetSlice()
	}
	return f.Name != "region" && slices.Contains(texts, "")
}

// mistakes makes the errors of a command mistakes in the command line.
func mistakes(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return finish(cmd, usageError{err})
		}
		return nil
	}
	return cmd
}

func countOf(args []string) string {
	switch len(args) {
	case 0:
		return "no arguments"
	case 1:
		return "one argument"
	}
	return fmt.Sprintf("%d arguments", len(args))
}

// finish prints an error on stderr, and returns the error from which Caddy's main function
// takes the exit status.
func finish(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	cmd.SilenceErrors = true // said here, once
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.CommandPath(), err)
	status := exitRefused
	if _, ok := errors.AsType[usageError](err); ok {
		status = exitUsage
	} else if _, ok := errors.AsType[noAnswerError](err); ok {
		status = exitNoAnswer
	}
	if status == exitRefused {
		return err // Caddy exits with 1
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })(cmd, nil)
}

// module is the path of this module, as Go writes it into a binary.
const module = "github.com/stockgate/stockgate"

// version says from which versions the binary was built: Stockgate's and Caddy's. A build
// may set caddy.CustomVersion to stockgate/VERSION, which `caddy version` says too; otherwise
// the binary knows its modules.
func version() string {
	_, full := caddy.Version()
	if caddy.CustomVersion != "" {
		return full
	}
	return "stockgate/" + builtFrom(debug.ReadBuildInfo()) + " " + full
}

// builtFrom is the version of this module in a binary.
func builtFrom(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil && m.Replace.Version != "" {
			return m.Replace.Version
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}
