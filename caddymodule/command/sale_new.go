package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/internal/sale"
)

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new <file> [--id <id>] [--timezone <zone>] [--starts <time>] [--ends <time>] [--item <sku>=<stock>[:<max>]]... [--items <csv>] [--per-buyer <units>]", Short: "Asks for a sale, and writes its file",
		Long: `
Asks what the sale is called, when it is, what it sells and how much of it a buyer may
have, and writes a sale file with comments. It applies nothing, and overwrites no file;
- is the standard output. A flag answers its question. Where the standard input is no
terminal nothing is asked: the flags then have all answers, and the id is the file's name,
the time zone UTC and no purchase limited without them.

A time has an offset, or is one in the time zone of the sale.`,
		Example: `  $ caddy stockgate sale new double11.yaml
  $ caddy stockgate sale new double11.yaml --timezone Asia/Shanghai --starts 2027-11-11T00:00 --ends 2027-11-12T00:00 --item 20001001=100:2 --per-buyer 2`,
		RunE: action(newSale, "file"),
	}
	cmd.Flags().String("id", "", "Id of the sale (default: the file's name)")
	cmd.Flags().String("timezone", "", "Time zone of the sale, such as Asia/Shanghai (default: UTC)")
	timeFlags(cmd)
	cmd.Flags().StringArray("item", nil, "An item, its stock and how many units one order may take, such as A-1=100:2")
	cmd.Flags().String("items", "", "CSV file with the items, instead of --item")
	cmd.Flags().String("per-buyer", "", "Units that one buyer may buy in the sale (default: any number)")
	return cmd
}

func timeFlags(cmd *cobra.Command) {
	cmd.Flags().String("starts", "", "When the sale starts, such as 2027-11-11T00:00")
	cmd.Flags().String("ends", "", "When it ends")
}

// asking gets answers from flags, and where they are missing from a person at the terminal.
type asking struct {
	c       *call
	in      *bufio.Reader // nil: there is no terminal
	missing []string      // flags without which nothing is known
}

func (c *call) asking() *asking {
	a := &asking{c: c}
	if c.onTerminal() {
		a.in = bufio.NewReader(c.cmd.InOrStdin())
	}
	return a
}

// about gets one answer, and gives it to take until that has no error. otherwise is the answer to an empty line, and
// where nothing can be asked; empty: there must be one.
func (a *asking) about(flag, question, otherwise string, take func(string) error) error {
	if text := a.c.text(flag); text != "" || a.in == nil {
		switch {
		case text == "" && otherwise == "":
			a.missing = append(a.missing, "--"+flag)
			return nil
		case text == "":
			return a.mistaken(flag, take(otherwise))
		}
		return a.mistaken(flag, take(text))
	}
	if otherwise != "" {
		question += " [" + otherwise + "]"
	}
	for {
		line, err := a.line(question + ": ")
		if err != nil {
			return err
		}
		if line = cmp.Or(line, otherwise); line == "" {
			continue
		}
		if err = take(line); err == nil {
			return nil
		}
		a.say("  %v\n", err)
	}
}

func (a *asking) mistaken(flag string, err error) error {
	if err != nil {
		return usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	return nil
}

func (a *asking) say(format string, args ...any) {
	fmt.Fprintf(a.c.cmd.ErrOrStderr(), format, args...)
}

// line asks on the terminal.
func (a *asking) line(question string) (string, error) {
	a.say("%s", question)
	line, err := a.in.ReadString('\n')
	if line = strings.TrimSpace(line); err != nil && line == "" {
		return "", errors.New("the answers end here: nothing was written")
	}
	return line, nil
}

// complete returns an error where answers are missing and nothing can be asked.
func (a *asking) complete(example string) error {
	if len(a.missing) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("the standard input is no terminal, so nothing can be asked: give %s, as in: %s", strings.Join(a.missing, ", "), example)}
}

// time gets a time of the sale.
func (a *asking) time(flag, question, otherwise string, s *sale.Sale, into *time.Time) error {
	return a.about(flag, question, otherwise, func(text string) (err error) {
		*into, err = s.ParseTime(text)
		return err
	})
}

// ends gets the end of a sale, which is later than its start.
func (a *asking) ends(question, otherwise string, s *sale.Sale) error {
	return a.about("ends", question, otherwise, func(text string) error {
		t, err := s.ParseTime(text)
		if err == nil && !s.StartsAt.IsZero() && !t.After(s.StartsAt) {
			err = fmt.Errorf("must be later than the start, %s", s.StartsAt.Format(time.RFC3339))
		}
		s.EndsAt = t
		return err
	})
}

func newSale(c *call) error {
	name := c.args[0]
	if err := notThere(name); err != nil {
		return err
	}
	a, s, items := c.asking(), new(sale.Sale), &askedItems{file: name}
	for _, question := range []func() error{
		func() error { return a.id(name, s) },
		func() error { return a.timezone(s) },
		func() error { return a.time("starts", "It starts at, such as 2027-11-11T00:00", "", s, &s.StartsAt) },
		func() error { return a.ends("It ends at", "", s) },
		func() error { return items.ask(a, s) },
		func() error { return a.perBuyer(s) },
		func() error {
			return a.complete("caddy stockgate sale new " + name + " --starts 2027-11-11T00:00 --ends 2027-11-12T00:00 --item A-1=100:2")
		},
	} {
		if err := question(); err != nil {
			return err
		}
	}
	return c.writeSale(name, s, items.csv)
}

// id gets the id of a new sale; the name of its file is offered.
func (a *asking) id(file string, s *sale.Sale) error {
	offered := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if !sale.IsID(offered) {
		offered = ""
	}
	return a.about("id", "Id of the sale, such as double11", offered, func(text string) error {
		s.ID = text
		return checkID(text)
	})
}

func (a *asking) timezone(s *sale.Sale) error {
	return a.about("timezone", "Its time zone, such as Asia/Shanghai", "UTC", func(text string) error {
		s.Timezone = text
		if _, err := time.LoadLocation(text); err != nil || text == "Local" {
			return fmt.Errorf("there is no time zone %q: use a name such as Asia/Shanghai", text)
		}
		return nil
	})
}

// perBuyer gets the purchase limit of a new sale.
func (a *asking) perBuyer(s *sale.Sale) error {
	return a.about("per-buyer", "Units that one buyer may buy in the sale, or any", "any", func(text string) error {
		if s.Limits = nil; text == "any" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > sale.MaxUnits {
			return fmt.Errorf("%q is no number of units: give 1 or more, or any", text)
		}
		s.Limits = []sale.Limit{{Per: "buyer", Every: "sale", Max: n, Count: "units"}}
		return nil
	})
}

func checkID(text string) error {
	if !sale.IsID(text) {
		return errors.New("must be 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begin with a letter or digit")
	}
	return nil
}

// notThere returns an error where a sale file must not be written.
func notThere(name string) error {
	if name == "-" {
		return nil
	}
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".yaml" && ext != ".yml" {
		return usageError{fmt.Errorf("%s: the name must end in .yaml, because the file is YAML; - is the standard output", name)}
	}
	if _, err := os.Lstat(name); err == nil {
		return usageError{fmt.Errorf("%s is there already, and is not overwritten: choose another name", name)}
	}
	return nil
}

// writeSale writes a new sale file, once it is one that can be applied.
func (c *call) writeSale(name string, s *sale.Sale, csv string) error {
	text := s.YAML(csv)
	checked, err := sale.ParseFrom(text, sale.Sources{Items: func(items string) ([]byte, error) { return c.readItems(name, items) }})
	if err != nil {
		return usageError{err}
	}
	if name == "-" {
		_, err := c.cmd.OutOrStdout().Write(text)
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return usageError{fmt.Errorf("the file cannot be written: %w", err)}
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	c.printf("%s has the sale %s, from %s to %s, with %s\n", name, checked.ID, checked.StartsAt.Format(time.RFC3339), checked.EndsAt.Format(time.RFC3339), plural(len(checked.Items), "item"))
	for _, advice := range checked.Advice(time.Now()) {
		c.printf("warning: %s\n", advice)
	}
	c.printf("nothing is applied yet; next: caddy stockgate sale apply %s --dry-run\n", name)
	return nil
}
