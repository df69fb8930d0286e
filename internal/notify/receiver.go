// Package notify sends operators what they are told: to a chat that takes Slack's messages, or as signed webhooks.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/post"
	"github.com/stockgate/stockgate/internal/store/notices"
)

// Form is how a receiver reads messages.
type Form string

const (
	// Slack is the form of Slack's incoming webhooks, which other chats read too.
	Slack Form = "slack"
	// Webhook is JSON with the signatures of Standard Webhooks.
	Webhook Form = "webhook"
)

// DefaultTimeout is how long a receiver may take to answer by default.
const DefaultTimeout = 10 * time.Second

// ReceiverOptions say where messages go.
type ReceiverOptions struct {
	// URL may contain a secret. No error and no log repeats it.
	URL  string
	Form Form
	// Secrets sign messages of the form Webhook, each of them.
	Secrets []post.Secret
	// Page is the page on which operators watch a sale; empty: messages have no link.
	Page string
	// Timeout is how long the receiver may take to answer. Default: DefaultTimeout.
	Timeout time.Duration
}

// Validate completes the form, and checks all fields.
func (t *ReceiverOptions) Validate() error {
	u, err := checkURL(t.URL)
	if err != nil {
		return err
	}
	if err := t.choose(u); err != nil {
		return err
	}
	if t.Page != "" {
		if _, err := checkURL(t.Page); err != nil {
			return fmt.Errorf("page: %w", err)
		}
	}
	if t.Timeout = cmp.Or(t.Timeout, DefaultTimeout); t.Timeout < time.Second || t.Timeout > time.Minute {
		return fmt.Errorf("timeout %v is outside 1s to 1m", t.Timeout)
	}
	return nil
}

// choose finds out how the receiver reads messages.
func (t *ReceiverOptions) choose(u *url.URL) error {
	slack := isSlack(u)
	switch {
	case t.Form != "" && t.Form != Slack && t.Form != Webhook:
		return fmt.Errorf("there is no form %.40q: write `form slack` or `form webhook`", t.Form)
	case t.Form == Slack && len(t.Secrets) > 0, slack && len(t.Secrets) > 0:
		return errors.New("a chat verifies no signature: leave `secret` out, or write `form webhook` for a receiver of your own")
	case t.Form == Webhook && len(t.Secrets) == 0:
		return errors.New("a webhook is signed, and there is no secret: write `secret {env.NOTIFY_SECRET}`, with a value that `echo whsec_$(openssl rand -base64 32)` makes")
	case t.Form == Webhook && slack:
		return errors.New("this URL is one of Slack or Discord, which cannot read a signed webhook: leave `form webhook` out")
	case t.Form != "":
	case slack:
		t.Form = Slack
	case len(t.Secrets) > 0:
		t.Form = Webhook
	default:
		return errors.New("how does the receiver read messages? Write `form slack` for a chat such as Mattermost or Rocket.Chat, and `secret {env.NOTIFY_SECRET}` for a receiver that verifies signatures")
	}
	return nil
}

// isSlack reports whether a URL is known to take Slack's messages.
func isSlack(u *url.URL) bool {
	switch host := strings.ToLower(u.Hostname()); host {
	case "hooks.slack.com", "hooks.slack-gov.com":
		return true
	case "discord.com", "discordapp.com":
		return strings.HasSuffix(u.Path, "/slack")
	}
	return false
}

// checkURL checks a URL. Its errors do not repeat it.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("the URL is empty; is the variable that it names there?")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" || strings.ContainsAny(text, "{}<>|\" "):
		return nil, errors.New("the URL must be a whole http or https URL, without placeholders that are unknown when the configuration loads")
	case u.User != nil:
		return nil, errors.New("the URL has a user in it: leave it out")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("the URL has a fragment, which is never sent: leave out # and what follows")
	case isDiscord(u) && !isSlack(u):
		return nil, errors.New("this URL is one of Discord, which reads Slack's messages under another path: write /slack at the end of the URL")
	}
	return u, nil
}

func isDiscord(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return (host == "discord.com" || host == "discordapp.com") && strings.HasPrefix(u.Path, "/api/webhooks/")
}

// Receiver gets messages. It is safe for concurrent use.
type Receiver struct {
	ReceiverOptions
	client *http.Client
}

// NewReceiver makes a receiver of a target that was validated. It does not connect.
func NewReceiver(t *ReceiverOptions) *Receiver { return &Receiver{*t, post.NewClient()} }

// Close ends idle connections.
func (r *Receiver) Close() { r.client.CloseIdleConnections() }

// Post sends a message once.
func (r *Receiver) Post(ctx context.Context, m *notices.Digest) post.Receipt {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	body := r.body(m)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return post.Receipt{Err: errors.New("its URL cannot be used")}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stockgate")
	if r.Form == Webhook {
		post.Sign(request.Header, r.Secrets, m.ID, time.Now(), body)
	}
	return post.Do(r.client, request)
}

// Fault says what is wrong with an answer; nil: nothing.
func Fault(a post.Receipt) error {
	switch {
	case a.Accepted():
		return nil
	case a.Status == 0 && errors.Is(a.Err, context.DeadlineExceeded):
		return errors.New("the receiver does not answer in time")
	case a.Status == 0:
		return fmt.Errorf("the receiver does not answer: %w", a.Err)
	case a.Status >= 300 && a.Status < 400:
		return fmt.Errorf("the receiver answers %d, which leads elsewhere, and that is not followed: configure the URL that takes messages", a.Status)
	case a.Status == http.StatusTooManyRequests:
		return errors.New("the receiver answers 429: it wants fewer messages, and gets the next one later")
	case a.Status == http.StatusForbidden, a.Status == http.StatusNotFound, a.Status == http.StatusGone, a.Status == http.StatusUnauthorized:
		return fmt.Errorf("the receiver answers %d: is its URL still the right one, and does its channel exist?", a.Status)
	case a.Refused():
		return fmt.Errorf("the receiver answers %d: it refuses what it is sent; is `form` right?", a.Status)
	}
	return fmt.Errorf("the receiver answers %d", a.Status)
}
