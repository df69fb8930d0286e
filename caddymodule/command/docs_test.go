package command_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// root is the directory of the repository.
const root = "../../"

func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pagesOfDocs are the pages that have commands for users, by their paths in the repository.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "bench/README.md"}
	for _, pattern := range []string{"docs/*.md", "bench/results/*.md", "examples/*.md", "examples/*/*.md"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		for _, file := range files {
			names = append(names, strings.TrimPrefix(file, root))
		}
	}
	return names
}

// section is what stands under a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	after, _, _ = strings.Cut(after, "\n## ")
	return after
}

var (
	block       = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")
	codeSpan    = regexp.MustCompile("`(caddy stockgate [^`\n]+)`")
	comment     = regexp.MustCompile(`\s+# .*`)
	goesOn      = regexp.MustCompile(`\\\n\s*`)
	placeholder = regexp.MustCompile(`[<\[|…]|\b[A-Z]{2,}\b`)
)

// commandLine is one that stands in a text.
type commandLine struct {
	line    string
	output  string // what stands below it
	console bool   // it stands in a console block
}

// whole reports whether a line can be run as it stands: code in a sentence may only name a command.
func (c commandLine) whole() bool {
	if placeholder.MatchString(strings.SplitN(c.line, " | ", 2)[0]) {
		return false
	}
	return c.console || valid(c.line) == nil
}

// commands are the command lines of a text, in their order: those of its console blocks, and
// the code in its sentences and tables that is a command of Stockgate's with arguments.
func commands(text string) (all []commandLine) {
	spans := func(text string) {
		for _, m := range codeSpan.FindAllStringSubmatch(strings.ReplaceAll(text, `\|`, "|"), -1) {
			if _, args, err := parsed(m[1]); err != nil || len(args) > 0 {
				all = append(all, commandLine{line: m[1]})
			}
		}
	}
	for {
		m := block.FindStringSubmatchIndex(text)
		if m == nil {
			spans(text)
			return all
		}
		spans(text[:m[0]])
		if text[m[4]:m[5]] == "console" {
			inBlock := goesOn.ReplaceAllString(text[m[6]:m[7]], "")
			for line := range strings.Lines(inBlock) {
				line = strings.TrimPrefix(line, text[m[2]:m[3]])
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					all = append(all, commandLine{line: comment.ReplaceAllString(strings.TrimSpace(command), ""), console: true})
				} else if command, ok := strings.CutPrefix(line, "# "); ok { // as root
					all = append(all, commandLine{line: strings.TrimSpace(command), console: true})
				} else if len(all) > 0 {
					all[len(all)-1].output += line
				}
			}
		}
		text = text[m[1]:]
	}
}

// parsed is the command of a line, and its flags and arguments.
func parsed(line string) (*cobra.Command, []string, error) {
	_, rest, _ := strings.Cut(line, "caddy stockgate")
	for _, end := range []string{" < ", " > ", " | "} {
		rest, _, _ = strings.Cut(rest, end)
	}
	stockgate := &cobra.Command{Use: "stockgate"}
	caddycmd.Commands()["stockgate"].CobraFunc(stockgate)
	return stockgate.Find(strings.Fields(rest))
}

var (
	optional         = regexp.MustCompile(`\[[^]]*\]`)
	ofFlag           = regexp.MustCompile(`--\S+ (<[^>]*>|\S+)`)
	argument         = regexp.MustCompile(`<[^>]+>`)
	optionalArgument = regexp.MustCompile(`\[<`)
)

// valid checks that a command exists, with flags and a number of arguments that it takes.
func valid(line string) error {
	cmd, args, err := parsed(line)
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err != nil {
		return err
	}
	given := cmd.Flags().Args()
	if cmd.DisableFlagParsing { // it takes negative numbers
		if given, err = withoutFlags(cmd, args); err != nil {
			return err
		}
	}
	use := ofFlag.ReplaceAllString(optional.ReplaceAllString(cmd.Use, ""), "")
	least := len(argument.FindAllString(use, -1))
	most := least + len(optionalArgument.FindAllString(cmd.Use, -1))
	switch have := len(given); {
	case cmd.HasSubCommands() && have > 0:
		return errors.New("there is no such command")
	case !cmd.HasSubCommands() && (have < least || have > most):
		return fmt.Errorf("it has %d arguments, %q takes %d to %d", have, cmd.Use, least, most)
	}
	return nil
}

// withoutFlags are the arguments of a command that takes negative numbers, whose flags must exist.
func withoutFlags(cmd *cobra.Command, args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, flag := strings.CutPrefix(args[i], "--")
		switch {
		case name == "":
		case !flag:
			rest = append(rest, args[i])
		case cmd.Flags().Lookup(name) == nil:
			return nil, fmt.Errorf("there is no flag --%s", name)
		default: // each has a value
			i++
		}
	}
	return rest, nil
}

var alternatives = regexp.MustCompile(`[a-z-]+(?:\|[a-z-]+)+`)

// Every `caddy stockgate …` of the documentation is a command that exists, with flags and a
// number of arguments that it takes. Where only a command is named, it exists.
func TestCommandsOfDocs(t *testing.T) {
	whole, named := 0, 0
	for _, name := range pagesOfDocs(t) {
		text := page(t, root+name)
		for _, c := range commands(text) {
			if !strings.Contains(c.line, "caddy stockgate ") || !c.whole() {
				continue
			}
			whole++
			if err := valid(c.line); err != nil {
				t.Errorf("%s: %s: %v", name, c.line, err)
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(strings.ReplaceAll(text, `\|`, "|"), -1) {
			words := alternatives.FindString(m[1])
			for _, word := range strings.Split(words, "|") {
				line := strings.Replace(m[1], words, word, 1)
				cmd, args, err := parsed(line)
				if err == nil && len(args) > 0 && cmd.HasSubCommands() {
					err = errors.New("there is no such command")
				} else if err == nil && !placeholder.MatchString(line) {
					err = cmd.ParseFlags(args)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				}
				named++
			}
		}
	}
	if whole < 60 || named < 80 {
		t.Errorf("only %d commands were found, and %d names of some", whole, named)
	}
}
