package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/rehearse"
	"github.com/stockgate/stockgate/internal/stampede"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func rehearseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rehearse --sale <sale> --host <host>... [--arrive spike|ramp|poisson|<log>] [--buyers <n>] [--over <time>] [--data <csv>] [--orders <file|url>]" +
			" [--require <bound>]... [--report <html>] [--judge-only] [<request.http>...]",
		Short: "Sends a crowd to your gate and shop, and judges the result",
		Long: `
Sends a crowd of buyers to your own gate and shop, and judges by the gate's books, and
by the shop's orders if --orders names them, whether every promise was kept: no
oversell, no unit missing, every yes an order and a sold unit, limits, journal and stock.
It places real orders: rehearse with a sale, a shop and a Redis that are for rehearsals.

The requests are saved as 'try' reads them. The buyers take them in turn, each with a
row of --data: {{column}} stands for its value. {{buyer}}, {{number}} and {{key}} need no
data; buyers and keys are new in each run. Requests go to the hosts that --host names,
by https unless the host is written as http://host:port, and nowhere else. No redirect is
followed.

Buyers arrive by --arrive: at once (spike), at a rate that grows (ramp), independently
(poisson), or as in an access log of Caddy in JSON. An order begins when it is due,
whether or not earlier ones are answered, and its latency counts from then. If this
machine cannot keep the schedule it says by how much.

With --waitlist buyers who hear all_held or not_your_turn enter the waiting list there,
ask as often as it says, and order when they have an offer.

--require bounds p50, p90, p99, max and late, such as p99<300ms; errors<1%; sold, held and
in_doubt, such as sold>=100. With --judge-only nothing is sent: what another load test
has done is judged, with --answers what its buyers were told. See docs/rehearse.md.

Exit status: 0 passed; 1 a promise is broken, a requirement is not met, or no request was
answered; 2 the command line or a file is wrong; 3 Caddy does not answer.`,
		Example: `  $ caddy stockgate rehearse --sale double11 --host shop.test --buyers 5000 order.http
  $ caddy stockgate rehearse --sale double11 --host shop.test --data users.csv --arrive ramp --over 30s \
      --double 5% --bots 1% --leave 2% --orders http://10.0.0.7:9000/orders --require "p99<300ms" order.http
  $ caddy stockgate rehearse --sale double11 --judge-only --orders orders.csv --json`,
	}
	flags := cmd.Flags()
	flags.String("sale", "", "Sale whose books are judged")
	flags.StringArray("host", nil, "Host to which requests may go; may be repeated")
	flags.String("data", "", "CSV file with a row for each buyer")
	flags.String("arrive", "", "How buyers arrive: spike, ramp, poisson, or the file of an access log (default: spike)")
	flags.Int("buyers", 0, "How many buyers come (default: one for each row of --data, or request of the log)")
	flags.Duration("over", 0, "How long they take to arrive (default for a log: as long as it took)")
	flags.String("double", "0%", "Share of buyers that send their order twice at once")
	flags.String("bots", "0%", fmt.Sprintf("Share of bots: each sends its order over %d connections, %d times over each", stampede.BotConnections, stampede.BotRequests))
	flags.String("leave", "0%", "Share of buyers that close the connection before the answer")
	flags.Uint64("seed", 1, "Repeats the choices of poisson and of the shares")
	flags.Int("retry", 0, "How often a buyer tries again, after Retry-After, whose refusal may pass")
	flags.String("waitlist", "", "Path of the waiting list, such as /waitlist: buyers who find all units held enter it by the request of their order")
	flags.String("enter", "100%", "Share of those buyers that enter")
	flags.Duration("patience", stampede.DefaultPatience, "How long a buyer waits on the list")
	flags.Duration("timeout", stampede.DefaultTimeout, "How long a buyer waits for an answer")
	flags.Bool("insecure", false, "Accept any certificate")
	flags.String("orders", "", "File or URL with the shop's orders, JSON or CSV")
	flags.Duration("settle", 10*time.Second, "How long holds may take to end before the books are read")
	flags.StringArray("require", nil, "Bound that must hold, such as p99<300ms; may be repeated")
	flags.Bool("judge-only", false, "Send nothing: only judge, without any flag of a crowd")
	flags.String("answers", "", "File of what the buyers of another load test were told, a JSON object a line")
	flags.String("report", "", "Write the report of the sale to this HTML file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return perform(cmd, args, runRehearsal, "request.http")
	}
	return cmd
}

func runRehearsal(c *call) error {
	o, err := readRehearsal(c)
	if err != nil {
		return usageError{err}
	}
	r, err := rehearse.New(o)
	if err != nil {
		return usageError{err}
	}
	ctx, stop := signal.NotifyContext(c.cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := r.Run(ctx)
	if err != nil {
		return err
	}
	if c.flag("json") {
		err = json.NewEncoder(c.cmd.OutOrStdout()).Encode(result)
	} else {
		_, err = result.WriteTo(c.cmd.OutOrStdout())
	}
	if file := c.text("report"); file != "" && err == nil {
		err = c.reportRehearsal(o.Sale, file)
	}
	if failed := result.Err(); failed != nil && err != nil {
		return fmt.Errorf("%w (and %v)", failed, err)
	} else if failed != nil {
		return failed
	}
	return err
}

// reportRehearsal writes the report of the sale, as the command report does.
func (c *call) reportRehearsal(sale, file string) error {
	var report adminapi.SaleReport
	c.wait = reportWait
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(sale)+"/report", nil, &report); err != nil {
		return err
	}
	say := c.cmd.OutOrStdout()
	if c.flag("json") {
		say = io.Discard
	}
	return c.saveReport(file, report.HTML, say)
}

// crowdFlags say what a crowd sends, and how. With --judge-only there is none.
var crowdFlags = []string{"host", "data", "arrive", "buyers", "over", "double", "bots", "leave", "seed", "retry", "waitlist", "enter", "patience", "timeout", "insecure"}

func readRehearsal(c *call) (rehearse.Options, error) {
	flags := c.cmd.Flags()
	o := rehearse.Options{
		Sale: c.text("sale"), Files: c.args, Data: c.text("data"), Waitlist: c.text("waitlist"), Arrive: c.text("arrive"), Insecure: c.flag("insecure"),
		Orders: c.text("orders"), JudgeOnly: c.flag("judge-only"), Answers: c.text("answers"),
		Fetch: c.fetchOr404, Progress: c.cmd.ErrOrStderr(), Rewrite: terminal.Is(c.cmd.ErrOrStderr()),
	}
	for _, flag := range crowdFlags {
		if o.JudgeOnly && flags.Changed(flag) {
			return o, fmt.Errorf("--judge-only sends no requests: leave out --%s", flag)
		}
	}
	o.Hosts, _ = flags.GetStringArray("host")
	o.Require, _ = flags.GetStringArray("require")
	o.Buyers, _ = flags.GetInt("buyers")
	o.Retry, _ = flags.GetInt("retry")
	o.Seed, _ = flags.GetUint64("seed")
	for flag, into := range map[string]*time.Duration{"over": &o.Over, "patience": &o.Patience, "timeout": &o.Timeout, "settle": &o.Settle} {
		if *into, _ = flags.GetDuration(flag); *into < 0 || *into == 0 && flags.Changed(flag) {
			return o, fmt.Errorf("--%s must be more than 0", flag)
		}
	}
	for flag, into := range map[string]*float64{"double": &o.Shares.Double, "bots": &o.Shares.Bots, "leave": &o.Shares.Leave, "enter": &o.Enter} {
		var err error
		if *into, err = readShare(c.text(flag)); err != nil {
			return o, fmt.Errorf("--%s %w", flag, err)
		}
	}
	switch {
	case o.Shares.Double+o.Shares.Bots+o.Shares.Leave > 1:
		return o, errors.New("--double, --bots and --leave are more than 100 % together")
	case flags.Changed("buyers") && o.Buyers < 1:
		return o, fmt.Errorf("--buyers %d: give 1 to %d", o.Buyers, rehearse.MaxBuyers)
	case o.Waitlist == "" && (flags.Changed("enter") || flags.Changed("patience")):
		return o, errors.New("--enter and --patience are about the waiting list: say where it is with --waitlist")
	case o.Waitlist != "" && (!strings.HasPrefix(o.Waitlist, "/") || o.Enter == 0):
		return o, errors.New("--waitlist is a path of the site, such as /waitlist, and --enter a share above 0")
	case o.Retry < 0:
		return o, errors.New("--retry must not be negative")
	case c.text("report") == "-":
		return o, errors.New("--report - : the standard output has the result; name a file")
	}
	return o, nil
}

// readShare reads 5% or 0.05.
func readShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("%q: write a share, such as 5%%", text)
	}
	return share, nil
}

// fetchOr404 reads a path of the admin API; a reservation that it does not have is
// reservation.ErrNotFound, and a sale that it does not have is a wrong command line.
func (c *call) fetchOr404(_ context.Context, path string, into any) error {
	r, err := c.request(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	err = r.read(http.MethodGet, into)
	if err != nil && r.status == http.StatusNotFound && strings.HasPrefix(path, "reservations/") {
		return reservation.ErrNotFound
	}
	if id, ok := strings.CutPrefix(path, "sales/"); ok && err != nil && r.status == http.StatusNotFound && !strings.Contains(id, "/") {
		return usageError{err}
	}
	return err
}
