package refuse

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockgate/stockgate/filters/language"
	"github.com/stockgate/stockgate/internal/sale"
)

// mostText bounds the sentence for a reason in one language, in bytes.
const mostText = 500

// Texts are the sentences of refusals for buyers, in the languages that are offered.
type Texts struct {
	languages []string // canonical tags; the first is the default
	by        map[string]map[sale.Reason]string
}

// builtIn are the texts without any of the operator's: English, and Chinese.
var builtIn = &Texts{languages: []string{"en", "zh"}, by: map[string]map[sale.Reason]string{"en": english(), "zh": chinese}}

func english() map[sale.Reason]string {
	texts := make(map[sale.Reason]string, len(sale.Kinds))
	for _, k := range sale.Kinds {
		texts[k.Reason] = k.Title
	}
	return texts
}

// With returns these texts with others of an operator, by language tag and reason, which take precedence. languages
// are those to offer, of which the first is the default; none: all in which there are texts, new ones last. Nil texts are
// the built-in ones.
func (t *Texts) With(texts map[string]map[string]string, languages []string) (*Texts, error) {
	if t == nil {
		t = builtIn
	}
	out := &Texts{languages: slices.Clone(t.languages), by: maps.Clone(t.by)}
	added := make(map[string]string) // as they were written, by canonical tag
	for _, written := range slices.Sorted(maps.Keys(texts)) {
		tag, err := language.Canonical(written)
		if err != nil {
			return nil, err
		}
		if added[tag] != "" {
			return nil, fmt.Errorf("%q and %q are one language: write its texts once", added[tag], written)
		}
		added[tag] = written
		if !slices.Contains(out.languages, tag) {
			out.languages = append(out.languages, tag)
		}
		out.by[tag] = maps.Clone(out.by[tag])
		if err := out.add(tag, texts[written]); err != nil {
			return nil, fmt.Errorf("language %s: %w", written, err)
		}
	}
	if len(languages) > 0 {
		if err := out.offer(languages, added); err != nil {
			return nil, err
		}
	}
	if len(out.languages) > language.Max {
		return nil, fmt.Errorf("there are texts in %d languages: at most %d can be offered", len(out.languages), language.Max)
	}
	return out, nil
}

// add adds texts in a language.
func (t *Texts) add(tag string, texts map[string]string) error {
	if len(texts) == 0 {
		return fmt.Errorf("it has no text: write one behind a reason, such as `sold_out: …`")
	}
	if t.by[tag] == nil {
		t.by[tag] = make(map[sale.Reason]string)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		reason := sale.Reason(name)
		if _, ok := sale.KindOf(reason); !ok {
			return fmt.Errorf("there is no reason %q: there are %s", name, reasonNames())
		}
		if err := checkText(texts[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.by[tag][reason] = strings.TrimSpace(texts[name])
	}
	return nil
}

// offer offers languages in this order. written are the languages of the texts that were added.
func (t *Texts) offer(languages []string, written map[string]string) error {
	t.languages = nil
	for _, text := range languages {
		tag, err := language.Canonical(text)
		switch {
		case err != nil:
			return fmt.Errorf("languages: %w", err)
		case slices.Contains(t.languages, tag):
			return fmt.Errorf("languages: %s is named twice", text)
		case t.by[tag] == nil:
			return fmt.Errorf("languages: there is no text in %s: write some in the file, or leave it out", text)
		}
		t.languages = append(t.languages, tag)
	}
	for _, tag := range slices.Sorted(maps.Keys(written)) {
		if !slices.Contains(t.languages, tag) {
			return fmt.Errorf("languages: there are texts in %s, which is not named: name it, or leave its texts out", written[tag])
		}
	}
	return nil
}

// checkText reports what no sentence for a buyer has.
func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("it has no text: write one, or leave the reason out")
	case len(text) > mostText:
		return fmt.Errorf("its text has %d bytes: at most %d are sent", len(text), mostText)
	case !utf8.ValidString(text):
		return fmt.Errorf("its text is not UTF-8")
	case strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl):
		return fmt.Errorf("its text has a line break or another control character: write one sentence on one line")
	case strings.ContainsRune(text, '{'):
		return fmt.Errorf("its text has a {: placeholders such as {sku} are filled in in the body of `refuse`, beside {title}, not in texts")
	}
	return nil
}

// of returns the languages that have a text for a reason, in the order in which they are offered, and these texts.
// Without any it is English.
func (t *Texts) of(reason sale.Reason) (tags, texts []string) {
	for _, tag := range t.languages {
		if text := t.by[tag][reason]; text != "" {
			tags, texts = append(tags, tag), append(texts, text)
		}
	}
	if len(tags) == 0 {
		tags, texts = []string{"en"}, []string{builtIn.by["en"][reason]}
	}
	return tags, texts
}

func reasonNames() string {
	names := make([]string, 0, len(sale.Kinds))
	for _, k := range sale.Kinds {
		names = append(names, string(k.Reason))
	}
	return strings.Join(names, ", ")
}
