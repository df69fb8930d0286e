package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// listLine bounds a line of an imported file, in bytes.
	listLine = 4096
	// progressEvery is the number of entries between two reports of progress.
	progressEvery = 100_000
)

func listCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list <command>", Short: "Changes and shows the named lists that are kept in Redis"}
	change := func(word, short, long string) *cobra.Command {
		c := &cobra.Command{
			Use: word + " <name> <entry...>", Short: short,
			Long: "\n" + long + `

An entry is an IP or a prefix, a value of a kind (buyer:…, phone:…, email:…,
device:…, address:…), or a value alone. All edges follow the change within a second.`,
			Example: "  $ caddy stockgate list " + word + " vips buyer:alice phone:13800138000\n" +
				"  $ caddy stockgate list " + word + " bad 192.0.2.0/24 2001:db8::/32",
		}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return finish(cmd, usageError{fmt.Errorf("it takes a name and at least one entry: %s", cmd.UseLine())})
			}
			return perform(cmd, args, changeEntries(word), "name", "entry")
		}
		return c
	}
	group(cmd,
		change("add", "Adds entries to a list", "Adds entries to a list that is kept in Redis."),
		change("remove", "Removes entries from a list", "Removes entries from a list that is kept in Redis, just as they were added: an\naddress that a listed prefix contains is no entry."),
		&cobra.Command{
			Use: "import <name> <file>", Short: "Adds the entries of a file to a list",
			Long: `
Adds the entries of a file to a list that is kept in Redis; - is the standard
input. There is one entry a line; blank lines and those that begin with # do not
count. A file is checked before anything is added. An import that breaks off may
be repeated: who is in the list already does not count.`,
			RunE: action(importList, "name", "file"),
		},
		&cobra.Command{Use: "show <name>", Short: "Says how many entries a list has", RunE: action(showList, "name")},
	)
	return cmd
}

// importer sends entries in batches, each of which may be sent again.
type importer struct {
	call          *call
	name, op      string
	batch         []string
	sent, changed int
}

func (i *importer) add(entry string) error {
	if i.batch = append(i.batch, entry); len(i.batch) == adminapi.ListBatch {
		return i.flush()
	}
	return nil
}

func (i *importer) flush() error {
	if len(i.batch) == 0 {
		return nil
	}
	body, err := json.Marshal(i.batch)
	if err != nil {
		return err
	}
	var answer adminapi.ListChanged
	if err := i.call.ask(http.MethodPost, "lists/"+segment(i.name)+"/"+i.op, body, &answer); err != nil {
		if i.sent > 0 {
			err = fmt.Errorf("%w; %d entries before that are done, the same again does no harm", err, i.sent)
		}
		return err
	}
	before := i.sent
	i.sent += len(i.batch)
	i.changed += answer.Changed
	i.batch = i.batch[:0]
	if i.sent/progressEvery > before/progressEvery {
		i.call.printf("%d entries, %d of them new, …\n", i.sent, i.changed)
	}
	return nil
}

func changeEntries(op string) func(*call) error {
	return func(c *call) error {
		i := &importer{call: c, name: c.args[0], op: op}
		for _, entry := range c.args[1:] {
			if err := i.add(entry); err != nil {
				return err
			}
		}
		if err := i.flush(); err != nil {
			return err
		}
		if op == "remove" {
			c.printf("%d of %d entries were removed from %s\n", i.changed, i.sent, i.name)
		} else {
			c.printf("%d of %d entries are new in %s\n", i.changed, i.sent, i.name)
		}
		return nil
	}
}

func importList(c *call) error {
	i := &importer{call: c, name: c.args[0], op: "add"}
	in, name := c.cmd.InOrStdin(), "standard input"
	if c.args[1] != "-" {
		f, err := os.Open(c.args[1])
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		in, name = f, c.args[1]
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := readLines(f, name, func(string) error { return nil }); err != nil {
				return err
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
	if err := readLines(in, name, i.add); err != nil {
		return err
	}
	if err := i.flush(); err != nil {
		return err
	}
	c.printf("%d of %d entries are new in %s\n", i.changed, i.sent, i.name)
	return nil
}

// readLines calls yield for every entry of a file, when it is one.
func readLines(in io.Reader, name string, yield func(string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, listLine), listLine)
	n := 0
	for lines.Scan() {
		n++
		text := lines.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		if _, err := list.Parse(text, sale.NormaliseIdentity); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err := yield(text); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d bytes", name, n+1, listLine)
	}
	return lines.Err()
}

func showList(c *call) error {
	var l adminapi.ListState
	if err := c.ask(http.MethodGet, "lists/"+segment(c.args[0]), nil, &l); err != nil {
		return err
	}
	where := "kept in redis"
	if l.Path != "" {
		where = "read from " + l.Path
	}
	c.printf("%s has %d entries, %s\n", l.Name, l.Entries, where)
	if l.Error != "" {
		c.printf("IT IS NOT WHAT THE FILE SAYS: %s\n", l.Error)
	}
	return nil
}
