package notify

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/stockgate/stockgate/internal/store/notices"
)

// MessageType is the type of signed messages.
const MessageType = "stockgate.notices"

// signedMessage is the body of a signed webhook.
type signedMessage struct {
	Type string `json:"type"`
	// Timestamp is when the last of its notices arose.
	Timestamp time.Time   `json:"timestamp"`
	Data      signedAbout `json:"data"`
}

type signedAbout struct {
	Notices []notices.Notice `json:"notices"`
	// Lost is how many notices found no room before these.
	Lost int64  `json:"lost,omitempty"`
	Page string `json:"page,omitempty"`
}

// body is a message in the receiver's form. It is the same each time.
func (r *Receiver) body(m *notices.Digest) []byte {
	var what any = r.slack(m)
	if r.Form == Webhook {
		what = signedMessage{MessageType, m.Notices[len(m.Notices)-1].At, signedAbout{m.Notices, m.Lost, r.link(m)}}
	}
	raw, _ := json.Marshal(what) // of texts, numbers and times it does not fail
	return raw
}

// slackMessage has everything twice: Slack shows the blocks, and other chats, which know none, the text.
type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
	// of links
	UnfurlLinks bool `json:"unfurl_links"`
}

type slackBlock struct {
	Type string     `json:"type"`
	Text *slackText `json:"text,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (r *Receiver) slack(m *notices.Digest) slackMessage {
	var out slackMessage
	var lines []string
	add := func(text string) {
		lines = append(lines, text)
		out.Blocks = append(out.Blocks, slackBlock{"section", &slackText{"mrkdwn", text}})
	}
	for _, n := range m.Notices {
		text := plain(n.Text)
		if n.Command != "" {
			text += "\n`" + plain(n.Command) + "`"
		}
		add(text)
	}
	if m.Lost > 0 {
		add(lostText(m.Lost))
	}
	if link := r.link(m); link != "" {
		add("<" + strings.ReplaceAll(link, "&", "&amp;") + "|Open the page>")
	}
	out.Text = strings.Join(lines, "\n")
	return out
}

func lostText(n int64) string {
	return fmt.Sprintf("%d earlier notices found no room while the receiver was away, and are lost: the page and the journal have what happened.", n)
}

// link leads to the page, and to the sale if the message is about one only.
func (r *Receiver) link(m *notices.Digest) string {
	u, err := url.Parse(r.Page)
	if r.Page == "" || err != nil {
		return ""
	}
	sale := m.Notices[0].Sale
	for _, n := range m.Notices {
		if n.Sale != sale {
			sale = ""
		}
	}
	if sale != "" {
		q := u.Query()
		q.Set("sale", sale)
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// plain is a text that no chat takes for a mention, a link or markup of its own. Names and reasons in it come from
// operators, requests and servers.
func plain(text string) string {
	var b strings.Builder
	for i, c := range text {
		switch {
		case c == '&':
			b.WriteString("&amp;")
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case c == '`':
			b.WriteByte('\'')
		case c == '@', c == ']' && strings.HasPrefix(text[i:], "]("), c == '*', c == '~', c == '_':
			b.WriteRune(c)
			b.WriteRune('\u200b') // without width: @here calls no one, and [text](url) is no link
		case !unicode.IsPrint(c):
			b.WriteByte(' ')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
