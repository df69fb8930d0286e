package directive

import (
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/filters/refuse"
)

// Messages are the sentences of refusals for buyers. Clients choose among the languages by
// Accept-Language.
type Messages struct {
	// Texts are sentences by language tag, such as zh-Hant, and by the reason of the refusal. They take
	// precedence over those that are built in, in English (en) and Chinese (zh). Default: none.
	Texts map[string]map[string]string `json:"texts,omitempty"`
	// Languages are what clients may choose by `Accept-Language` (BCP 47); the first is the default. Default: `en
	// zh`, and the others of the file.
	Languages []string `json:"languages,omitempty"`
}

// Over returns the texts of a gate or guard. Its own take precedence over the texts for all; either may be nil.
func (m *Messages) Over(all *Messages) (*refuse.Texts, error) {
	var texts *refuse.Texts
	for _, m := range []*Messages{all, m} {
		if m == nil {
			continue
		}
		var err error
		if texts, err = texts.With(m.Texts, m.Languages); err != nil {
			return nil, fmt.Errorf("messages: %w", err)
		}
	}
	return texts, nil
}

// Check validates the messages.
func (m *Messages) Check() error {
	_, err := m.Over(nil)
	return err
}

// HasMessages is an app that has the messages for all gates and guards.
type HasMessages interface{ SharedMessages() *Messages }

// MessagesUsage is the syntax of messages.
const MessagesUsage = "messages [<file>] [{ languages <tag...> }]"

// ReadMessages reads the option messages, with its file: a reload of the Caddyfile reads it again.
func ReadMessages(into **Messages) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := Arguments(d, usage, 0, 1)
		if err != nil {
			return err
		}
		m, at := new(Messages), *d
		if len(args) == 1 {
			if m.Texts, err = readTexts(d, args[0]); err == nil {
				var builtIn *refuse.Texts
				_, err = builtIn.With(m.Texts, nil) // texts in its languages may be elsewhere
			}
			if err != nil {
				return d.Errf("messages %s: %w", args[0], err)
			}
		}
		if err := ReadBlock(d, map[string]Option{"languages": {Usage: "languages <tag...>", Read: Texts(&m.Languages)}}); err != nil {
			return err
		}
		if len(args) == 0 && m.Languages == nil {
			return at.Errf("messages names no file and no languages: write `%s`", usage)
		}
		*into = m
		return nil
	}
}
