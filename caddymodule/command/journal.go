package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// followEvery is how often a follower looks for new movements.
const followEvery = 500 * time.Millisecond

func journalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "journal <command>", Short: "Shows what has happened to a sale's stock, movement by movement"}
	export := &cobra.Command{
		Use:   "export <sale> [--from <number>] [--epoch <epoch>] [--follow]",
		Short: "Prints all movements",
		Long: `
Prints a sale's movements in their order, one JSON object a line, from number 1 or
from --from, and ends with the newest; with --follow it goes on until it is
interrupted. What the journal does not keep any more is read from the ledger, where
one is configured; else it says from which number it can go on.

sale, epoch and seq together are those of one movement. After Redis has lost a sale it
has another epoch, and its numbers start over: --follow says so and goes on with it;
--epoch prints what the ledger has of an older one.`,
		Example: `  $ caddy stockgate journal export double11 > double11.jsonl
  $ caddy stockgate journal export double11 --from 1001 | jq 'select(.kind == "confirmed")'`,
		RunE: action(exportJournal, "sale"),
	}
	export.Flags().Int64("from", 1, "Number of the first movement")
	export.Flags().Int64("epoch", 0, "Epoch of the movements, where it is not the present one")
	export.Flags().BoolP("follow", "f", false, "Go on with what happens from now on")
	tail := &cobra.Command{
		Use:   "tail <sale> [--lines <number>|--from <number>] [--no-follow] [--format text|json]",
		Short: "Prints the newest movements, and goes on",
		Long: `
Prints a sale's newest movements, or those from --from, and then each one that comes,
until it is interrupted; with --no-follow it ends with the newest. On a terminal it
prints one line for each, for a program one JSON object a line, as 'journal export'
does. --format chooses.`,
		Example: `  $ caddy stockgate journal tail double11
  $ caddy stockgate journal tail double11 --lines 20 --no-follow
  $ caddy stockgate journal tail double11 --lines 0 | my-order-system`,
		RunE: action(tailJournal, "sale"),
	}
	tail.Flags().Int64P("lines", "n", 10, "How many of the newest are printed first")
	tail.Flags().Bool("no-follow", false, "End with the newest")
	tail.Flags().String("format", "", "text or json. Default: text on a terminal, otherwise json")
	tail.Flags().Int64("from", 0, "Number of the first movement")
	status := &cobra.Command{
		Use: "status [<sale>]", Short: "Shows where journals begin and end, and their readers",
		Long: `
Shows for a sale, or for all of them, which movements are in Redis, and how far the ledger and
the outbox have come.`,
		Example: "  $ caddy stockgate journal status",
	}
	status.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return finish(cmd, usageError{fmt.Errorf("it takes at most one argument: %s", cmd.UseLine())})
		}
		return perform(cmd, args, showJournals, "sale")
	}
	group(cmd, tail, export, status)
	return cmd
}

func (c *call) number(flag string) int64 {
	n, err := c.cmd.Flags().GetInt64(flag)
	if err != nil {
		panic(err) // the command does not declare its flag
	}
	return n
}

func exportJournal(c *call) error {
	from, epoch := c.number("from"), c.number("epoch")
	switch {
	case from < 1:
		return usageError{errors.New("--from must be 1 or more")}
	case epoch < 0 || epoch > 0 && c.flag("follow"):
		return usageError{errors.New("--epoch is one that is over: without it there is the present one, and nothing to follow in any other")}
	}
	return c.untilInterrupted(&journalPrinter{call: c, after: from - 1, epoch: epoch, old: epoch > 0, follow: c.flag("follow")})
}

func tailJournal(c *call) error {
	p := &journalPrinter{call: c, after: c.number("from") - 1, follow: !c.flag("no-follow")}
	switch lines := c.number("lines"); {
	case c.cmd.Flags().Changed("from") && c.cmd.Flags().Changed("lines"):
		return usageError{errors.New("--from and --lines exclude each other")}
	case c.cmd.Flags().Changed("from") && p.after < 0:
		return usageError{errors.New("--from must be 1 or more")}
	case lines < 0:
		return usageError{errors.New("--lines must be 0 or more")}
	case c.text("format") != "" && c.text("format") != "text" && c.text("format") != "json":
		return usageError{errors.New("--format is text or json")}
	case p.after < 0:
		var s adminapi.JournalState
		if _, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0])+"/journal", nil, &s); err != nil {
			return err
		}
		p.epoch = s.Epoch
		p.after = max(s.Last-lines, min(s.First-1, s.Last), 0)
	}
	p.text = c.text("format") == "text" || c.text("format") == "" && !c.flag("json") && c.forPerson()
	return c.untilInterrupted(p)
}

// untilInterrupted prints whole lines until it is done or interrupted.
func (c *call) untilInterrupted(p *journalPrinter) error {
	ctx, stop := signal.NotifyContext(c.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.cmd.SetContext(ctx)
	p.out = bufio.NewWriter(c.cmd.OutOrStdout())
	err := p.print(ctx)
	if ctx.Err() != nil {
		if p.follow {
			return nil // how following ends
		}
		err = errors.New("interrupted")
	}
	if err != nil && p.printed > 0 {
		err = fmt.Errorf("%w (the last one that is printed is number %d: --from %d goes on after it)", err, p.after, p.after+1)
	}
	return err
}

// journalPrinter prints a sale's movements, one page after the other.
type journalPrinter struct {
	*call
	out     *bufio.Writer
	after   int64 // the last number that was printed or skipped
	epoch   int64 // 0: the current one
	old     bool  // the command names the epoch
	follow  bool
	text    bool // for a person, not JSON
	printed int
}

func (p *journalPrinter) print(ctx context.Context) error {
	for {
		var page adminapi.MovementPage[json.RawMessage]
		if p.follow {
			p.wait = adminapi.JournalWait*time.Second + callTimeout
		}
		query := url.Values{"after": {decimal(p.after)}, "limit": {decimal(adminapi.JournalPage)}}
		if p.epoch > 0 {
			query.Set("epoch", decimal(p.epoch))
		}
		if p.follow {
			query.Set("wait", decimal(adminapi.JournalWait))
		}
		if _, err := p.fetch(http.MethodGet, "sales/"+segment(p.args[0])+"/journal/movements?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		p.epoch = page.Epoch
		if err := p.write(page.Movements); err != nil {
			return err
		}
		switch {
		case len(page.Movements) > 0:
			continue
		case page.Current == page.Epoch && !p.follow:
			return nil
		case page.Current != page.Epoch && !p.follow:
			return p.otherEpoch(page.Current)
		case page.Current != page.Epoch:
			fmt.Fprintf(p.cmd.ErrOrStderr(), "redis has lost sale %s since: its epoch was %d and is %d, and its numbers start over\n", p.args[0], page.Epoch, page.Current)
			p.epoch, p.after = page.Current, 0
			continue
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write prints movements and moves p.after to the last of them.
func (p *journalPrinter) write(movements []json.RawMessage) error {
	for _, m := range movements {
		line := append(m, '\n')
		if p.text {
			var err error
			if line, err = readable(m); err != nil {
				return err
			}
		}
		if _, err := p.out.Write(line); err != nil {
			return err
		}
	}
	if err := p.out.Flush(); err != nil {
		return err
	}
	p.after += int64(len(movements))
	p.printed += len(movements)
	return nil
}

// otherEpoch returns how a print ends whose epoch is over. If the command names the epoch,
// that is the end of what the ledger has.
func (p *journalPrinter) otherEpoch(current int64) error {
	if p.old && p.printed > 0 {
		return nil
	}
	if p.old {
		return fmt.Errorf("sale %s has the epoch %d, and no ledger here has any movement of %d after number %d", p.args[0], current, p.epoch, p.after)
	}
	return fmt.Errorf("redis has lost sale %s meanwhile: its epoch was %d and is %d; --epoch %d prints what the ledger has of it", p.args[0], p.epoch, current, p.epoch)
}

func showJournals(c *call) error {
	var all adminapi.JournalStates
	if len(c.args) == 1 {
		all.Journals = make([]adminapi.JournalState, 1)
		if err := c.ask(http.MethodGet, "sales/"+segment(c.args[0])+"/journal", nil, &all.Journals[0]); err != nil {
			return err
		}
	} else if err := c.ask(http.MethodGet, "journals", nil, &all); err != nil {
		return err
	}
	var trouble []error
	t := c.table("SALE", "EPOCH", "FIRST", "LAST", "SINCE", "LEDGER", "BEHIND", "OUTBOX", "BEHIND")
	for _, s := range all.Journals {
		since := ""
		if !s.Began.IsZero() {
			since = adminapi.LocalTime(s.Began)
		}
		row := []string{s.Sale, decimal(s.Epoch), decimal(s.First), decimal(s.Last), since}
		for _, r := range []*adminapi.JournalReader{s.Ledger, s.Outbox} {
			if r == nil {
				row = append(row, "", "")
			} else {
				row = append(row, decimal(r.Has), decimal(r.Behind))
			}
		}
		t.row(row...)
		if s.Ledger != nil && s.Ledger.Trouble != "" {
			trouble = append(trouble, errors.New(s.Ledger.Trouble))
		}
	}
	return errors.Join(append(trouble, t.print())...)
}

// readable turns a movement into a line for a person: number, time, kind, id, units, and
// what caused it.
func readable(movement []byte) ([]byte, error) {
	var m struct {
		Seq   int64     `json:"seq"`
		Kind  string    `json:"kind"`
		Time  time.Time `json:"time"`
		ID    string    `json:"id"`
		Was   string    `json:"was"`
		Lines []struct {
			Cell  string `json:"cell"`
			Units int64  `json:"units"`
		} `json:"lines"`
		Cause string `json:"cause"`
	}
	if err := json.Unmarshal(movement, &m); err != nil {
		return nil, noAnswerError{fmt.Errorf("a movement cannot be read: are Caddy and this command of the same version? %w", err)}
	}
	var units []string
	for _, l := range m.Lines {
		units = append(units, fmt.Sprintf("%d×%s", l.Units, l.Cell))
	}
	kind := m.Kind
	if m.Was != "" && m.Was != m.Kind {
		kind = m.Was + " → " + m.Kind
	}
	line := fmt.Sprintf("%6d  %s  %-20s  %-36s  %s  %s", m.Seq, m.Time.Local().Format("2006-01-02 15:04:05.000 -0700"), kind, m.ID, strings.Join(units, " "), m.Cause)
	return []byte(strings.TrimRight(line, " ") + "\n"), nil
}
