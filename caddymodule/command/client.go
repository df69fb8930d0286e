package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

const (
	// callTimeout bounds one request to the admin endpoint: longer than the API's own bound.
	callTimeout = 30 * time.Second
	// callAnswer bounds its answer in bytes: the stock of the largest sale is smaller.
	callAnswer = 64 << 20
)

// call is one run of a command.
type call struct {
	cmd  *cobra.Command
	args []string
	wait time.Duration // for an answer; 0: callTimeout

	config []byte // of --config, adapted; nil: not read yet
}

func (c *call) text(flag string) string {
	v, err := c.cmd.Flags().GetString(flag)
	if err != nil {
		panic(err) // the command does not declare its flag
	}
	return v
}

func (c *call) flag(flag string) bool {
	v, err := c.cmd.Flags().GetBool(flag)
	if err != nil {
		panic(err)
	}
	return v
}

// printf writes to stdout, unless it belongs to the JSON.
func (c *call) printf(format string, args ...any) {
	if !c.flag("json") {
		fmt.Fprintf(c.cmd.OutOrStdout(), format, args...)
	}
}

// ask is fetch; with --json the answer is printed as it came.
func (c *call) ask(method, path string, body []byte, answer any) error {
	raw, err := c.fetch(method, path, body, answer)
	if c.flag("json") {
		_, _ = c.cmd.OutOrStdout().Write(raw)
	}
	return err
}

// fetch sends a request to the admin endpoint of the running Caddy and reads the answer into
// answer. It returns the raw answer, also of a refusal; nil: the API has not answered.
func (c *call) fetch(method, path string, body []byte, answer any) ([]byte, error) {
	r, err := c.request(method, path, body)
	if err != nil {
		return nil, err
	}
	return r.raw, r.read(method, answer)
}

// reply is what the API has answered.
type reply struct {
	address, path string
	status        int
	raw           []byte
}

// request sends a request to the admin endpoint, and makes sure that Stockgate answers.
func (c *call) request(method, path string, body []byte) (*reply, error) {
	address, err := c.adminAddress()
	if err != nil {
		return nil, usageError{err}
	}
	served, status, raw, err := askAdmin(c.cmd.Context(), address, method, "/stockgate/"+path, body, cmp.Or(c.wait, callTimeout))
	if err != nil {
		return nil, err
	}
	if !served {
		return nil, notServed(address, status)
	}
	return &reply{address, path, status, raw}, nil
}

func notServed(address string, status int) error {
	return noAnswerError{fmt.Errorf("what answers %d at %s is not a Caddy with stockgate: is the address right, and was that Caddy built with the module?", status, address)}
}

// read reads the answer into answer, or returns the refusal.
func (r *reply) read(method string, answer any) error {
	refusal := struct {
		Error string `json:"error"`
	}{}
	if r.status != http.StatusOK {
		if json.Unmarshal(r.raw, &refusal) != nil || refusal.Error == "" {
			return noAnswerError{fmt.Errorf("the Caddy at %s answers %d to %s, which this command cannot read: are they of the same version?", r.address, r.status, r.path)}
		}
	}
	switch {
	case r.status >= 500:
		return noAnswerError{errors.New(refusal.Error)}
	case r.status == http.StatusBadRequest && method != http.MethodPut: // not the file: what was typed
		return usageError{errors.New(refusal.Error)}
	case r.status != http.StatusOK:
		return errors.New(refusal.Error)
	}
	if err := json.Unmarshal(r.raw, answer); err != nil {
		return noAnswerError{fmt.Errorf("the Caddy at %s answers what this command cannot read: are they of the same version? %w", r.address, err)}
	}
	return nil
}

// userName returns the user that runs the command, for the log.
func userName() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); err == nil {
		name = cmp.Or(name, u.Username)
	}
	return adminapi.PlainText(name, 64)
}

// segment escapes a name as one segment of a path, dots too: a SKU of dots would otherwise be
// resolved as a dot segment.
func segment(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// askAdmin makes one request to an admin endpoint and reads the answer. Unlike Caddy's own
// helper it keeps the status of an error. served: the answer is Stockgate's.
func askAdmin(ctx context.Context, address, method, uri string, body []byte, wait time.Duration) (served bool, status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	resp, err := openAdmin(ctx, address, method, uri, body)
	if err != nil {
		return false, 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, callAnswer))
	if err != nil {
		return false, 0, nil, brokeOff(address, err)
	}
	return resp.Header.Get(adminapi.ServedHeader) != "", resp.StatusCode, answer, nil
}

func brokeOff(address string, err error) error {
	return noAnswerError{fmt.Errorf("the answer of Caddy at %s broke off: %w", address, err)}
}

// openAdmin makes one request to an admin endpoint, which may be a socket. The caller reads the answer, and closes it.
func openAdmin(ctx context.Context, address, method, uri string, body []byte) (*http.Response, error) {
	address, err := plainAddress(caddy.NewReplacer().ReplaceKnown(address, "")) // a config may say {env.ADMIN}
	if err != nil {
		return nil, usageError{err}
	}
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil || parsed.PortRangeSize() > 1 || parsed.IsFdNetwork() {
		return nil, usageError{fmt.Errorf("%q is no address of an admin endpoint; give one with --address, such as localhost:2019", address)}
	}
	dial, origin := parsed.JoinHostPort(0), "http://"+parsed.JoinHostPort(0)
	if parsed.IsUnixNetwork() {
		dial, _, _ = strings.Cut(dial, "|") // the socket's permissions
		origin = "http://127.0.0.1"         // a socket has no name, HTTP needs one
	}
	req, err := http.NewRequestWithContext(ctx, method, origin+uri, bytes.NewReader(body))
	if err != nil {
		return nil, usageError{err}
	}
	if !parsed.IsUnixNetwork() {
		req.Header.Set("Origin", origin)
	}
	req.Header.Set(adminapi.ByHeader, userName())
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, parsed.Network, dial)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, noAnswerError{fmt.Errorf("no answer from Caddy at %s: %w; is it running? --address and --config say where", address, errors.Unwrap(err))}
	}
	return resp, nil
}

// plainAddress takes the scheme and a final slash off an address that is written as a URL.
func plainAddress(address string) (string, error) {
	if strings.HasPrefix(strings.ToLower(address), "https://") {
		return "", fmt.Errorf("%q: Caddy's admin endpoint speaks plain HTTP; write host:port", address)
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok && strings.EqualFold(scheme, "http") {
		host, path, _ := strings.Cut(rest, "/")
		if path != "" {
			return "", fmt.Errorf("%q has a path; write host:port alone", address)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "80")
		}
		return host, nil
	}
	return address, nil
}
