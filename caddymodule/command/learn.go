package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/selfcheck"
	"github.com/stockgate/stockgate/internal/learn"
)

func learnCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "learn [--order <entry>] [--shop <host:port>] [--dir <directory>] <buy.har> [<more.har>]...",
		Short: "Writes a gate from the recording of a purchase",
		Long: `
Reads recordings of one purchase at your shop, as browsers export them (HAR), and
writes Caddyfile, sale.yaml and questions.md. Give the recording of an order that was
taken first; a second one, and one that the shop refused, make the result better.

Each line of the Caddyfile has the recorded request above it on which it rests. What no
recording shows is a question in questions.md, with the line that the answer changes.
It never writes passwords, tokens, cookies or personal data. If the recording is of
Vendure or Medusa, the configuration is the one that is tested in front of that shop.

Before it writes, it checks the configuration: every recorded request is played to it, in
this process, with an embedded Redis, before a shop that answers as it was recorded. The
order must be reserved with its lines and settled by its answer, and all other requests
must reach the shop as they are. Nothing is sent over the network.

A file that you have edited is not overwritten: what would be written now comes beside it,
as Caddyfile.new. If the check fails, only Caddyfile.failed is written.

Exit status: 0 written; 1 the recording does not give a configuration, or the check fails;
2 the command line or a file is wrong.`,
		Example: `  $ caddy stockgate learn buy.har
  $ caddy stockgate learn --shop 10.0.0.5:3000 buy.har again.har sold-out.har`,
	}
	cmd.Flags().Int("order", 0, "Entry of the first recording that places the order (default: the likeliest)")
	cmd.Flags().String("shop", "", "Where the shop listens behind the gate, host:port")
	cmd.Flags().String("dir", "", "Directory to write to (default: the current one)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return finish(cmd, usageError{errors.New("it takes a recording: " + cmd.UseLine())})
		}
		return perform(cmd, args, learnShop, "buy.har")
	}
	return cmd
}

func learnShop(c *call) error {
	order, err := c.cmd.Flags().GetInt("order")
	if err != nil || order < 0 {
		return usageError{errors.New("--order must be the number of an entry, from 1")}
	}
	shop := strings.TrimSuffix(strings.TrimPrefix(c.text("shop"), "http://"), "/")
	if strings.ContainsAny(shop, "/ {}\n\t\"`") {
		return usageError{errors.New("--shop: write host:port")}
	}
	var recordings []*learn.Recording
	for _, name := range c.args {
		rec, err := readRecording(name)
		if err != nil {
			return usageError{err}
		}
		recordings = append(recordings, rec)
	}
	learned, err := learn.Learn(recordings, learn.Options{Order: order, Shop: shop})
	if err != nil {
		return err
	}
	checked, err := selfcheck.Run(c.cmd.Context(), learned)
	if err != nil {
		return err
	}
	learned.Doubt(checked.Doubts)
	for _, removed := range checked.Removed {
		learned.Removed(removed.Request, removed.Field)
	}
	learned.Closed(checked.Closed)
	return c.writeLearned(learned, checked)
}

func readRecording(name string) (*learn.Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return learn.Read(learn.FileName(filepath.Base(name)), file)
}

// writeLearned writes the files, or what the check has found.
func (c *call) writeLearned(l *learn.Learned, checked *selfcheck.Checked) error {
	year := time.Now().UTC().Year() + 1
	from := time.Date(year, time.January, 1, 10, 0, 0, 0, time.UTC)
	files := []learnedFile{
		{"Caddyfile", "#", l.Caddyfile(learn.Addresses{})},
		{"sale.yaml", "#", l.SaleFile(learn.Window{From: from, To: from.Add(24 * time.Hour), Stock: 1})},
		{"questions.md", "<!--", l.QuestionsFile(checked.Warnings)},
	}
	for _, f := range files {
		if err := l.Leak(f.text); err != nil {
			return err
		}
	}
	if len(checked.Problems) > 0 {
		return c.writeFailed(files[0], checked.Problems)
	}
	for _, f := range files {
		if err := f.write(c); err != nil {
			return err
		}
	}
	if known := l.Known(); known != "" {
		fmt.Fprintf(c.cmd.OutOrStdout(), "The shop looks like %s: the configuration is the tested one.\n", known)
	}
	fmt.Fprintf(c.cmd.OutOrStdout(), "The order is %s. Checked: it is reserved with its lines, and %d other requests pass untouched.\nAnswer the %d questions in questions.md before you sell.\n",
		l.Order.Name(), checked.Passed, len(l.Questions))
	return nil
}

// writeFailed writes the configuration under a name from which Caddy does not take it.
func (c *call) writeFailed(f learnedFile, problems []string) error {
	text := "# This configuration failed its check:\n"
	for _, p := range problems {
		text += "# - " + p + "\n"
	}
	path := filepath.Join(c.text("dir"), "Caddyfile.failed")
	if err := os.WriteFile(path, []byte(text+f.text), 0o644); err != nil {
		return err
	}
	return fmt.Errorf("the configuration that the recording gives is wrong, and is only in %s: %s. Correct it there, or name the order request with --order", path, strings.Join(problems, "; "))
}

// learnedFile is a file that learn writes.
type learnedFile struct{ name, comment, text string }

// write writes the file, unless one is there that was edited: then beside it.
func (f learnedFile) write(c *call) error {
	path := filepath.Join(c.text("dir"), f.name)
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case learn.Unedited(string(old)):
	case learn.SealedAs(string(old), f.text):
		fmt.Fprintf(c.cmd.OutOrStdout(), "%s stays as you have edited it: the recordings give nothing else than before.\n", path)
		return nil
	default:
		fmt.Fprintf(c.cmd.OutOrStdout(), "%s stays as it is, because it was edited: compare it with %s.new.\n", path, path)
		path += ".new"
	}
	if err := os.WriteFile(path, []byte(learn.Seal(f.comment, f.text)), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(c.cmd.OutOrStdout(), "Wrote %s.\n", path)
	return nil
}
