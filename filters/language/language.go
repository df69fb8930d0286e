// Package language finds which of the languages that are offered a client prefers (RFC 9110,
// section 12.5.4), by the lookup of RFC 4647, section 3.4.
package language

import (
	"errors"
	"fmt"
	"strings"

	xlanguage "golang.org/x/text/language"
)

// Max bounds the languages that are offered.
const Max = 64

// Offered are languages of which clients choose. The first one is the default.
type Offered struct {
	tags []string
	// by has the number of each tag, and of the ranges that lead to it, in lower case.
	by map[string]int
}

// Canonical returns a language tag (BCP 47) in its usual form, such as zh-Hant for ZH-hant.
func Canonical(text string) (string, error) {
	tag, err := xlanguage.Parse(text)
	var unknown xlanguage.ValueError
	switch {
	case errors.As(err, &unknown):
		return "", fmt.Errorf("%q is not a language tag: %s is unknown; write one such as de, pt-BR or zh-Hant", text, unknown.Subtag())
	case err != nil || tag == xlanguage.Und || len(text) > mostTag:
		return "", fmt.Errorf("%q is not a language tag: write one such as de, pt-BR or zh-Hant", text)
	}
	return tag.String(), nil
}

// Ranges of Chinese that name a region imply a script, and those without either mean the
// simplified one (CLDR, likely subtags).
var (
	traditional = []string{"zh-hant", "zh-tw", "zh-hk", "zh-mo"}
	simplified  = []string{"zh-hans", "zh-cn", "zh-sg", "zh-my", "zh", "cmn"}
)

// Offer offers languages by their canonical tags, up to Max.
func Offer(tags ...string) *Offered {
	o := &Offered{tags: tags, by: make(map[string]int)}
	for i, tag := range tags {
		o.leads(i, strings.ToLower(tag))
	}
	for i, tag := range tags {
		known := xlanguage.Make(tag)
		base, _ := known.Base()
		script, _ := known.Script()
		switch {
		case base.String() != "zh":
		case script.String() == "Hant":
			o.leads(i, traditional...)
		default:
			o.leads(i, simplified...)
		}
	}
	// a client that asks for pt or pt-PT reads pt-BR, if there is no other Portuguese
	for i, tag := range tags {
		for cut := strings.LastIndexByte(tag, '-'); cut > 0; cut = strings.LastIndexByte(tag, '-') {
			tag = tag[:cut]
			o.leads(i, strings.ToLower(tag))
		}
	}
	return o
}

// leads notes that ranges lead to a language, unless they lead to an earlier one.
func (o *Offered) leads(i int, ranges ...string) {
	for _, r := range ranges {
		if _, taken := o.by[r]; !taken {
			o.by[r] = i
		}
	}
}
