package language_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/language"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		offered string
		fields  []string
		want    string
	}{
		{"en zh", nil, "en"},
		{"en zh", []string{""}, "en"},
		{"en zh", []string{"*"}, "en"},
		{"zh en", []string{"*"}, "zh"},
		{"en zh", []string{"zh"}, "zh"},
		{"en zh", []string{"zh-CN"}, "zh"},
		{"en zh", []string{"ZH-hans-cn"}, "zh"},
		{"en zh", []string{"zh-CN,zh;q=0.9,en;q=0.8"}, "zh"},
		{"en zh", []string{"de, zh;q=0.5"}, "zh"},
		{"en zh", []string{"de"}, "en"},
		{"en zh", []string{"de", "zh"}, "zh"},
		{"en zh", []string{"en;q=0.1", "zh;q=0.2"}, "zh"},
		{"en zh", []string{"en;q=0.5, *;q=0.8"}, "zh"},
		{"en zh", []string{"en;q=0, *"}, "zh"},
		{"en zh", []string{"*, zh;q=0.5"}, "en"},
		{"en zh", []string{"*;q=0.1, zh;q=0.5"}, "zh"},
		{"en zh", []string{"zh;q=0"}, "en"},
		{"en zh", []string{"zh;q=0, *"}, "en"},
		{"en zh", []string{"en;q=0, zh;q=0, *"}, "en"},
		{"en zh", []string{"zh;q=0.5, en;q=0.5"}, "zh"},
		{"en zh", []string{" zh\t;\tQ=0.5 ,, "}, "zh"},
		// the script of a region
		{"en zh", []string{"zh-TW"}, "zh"},
		{"en zh zh-Hant", []string{"zh-TW"}, "zh-Hant"},
		{"en zh zh-Hant", []string{"zh-HK, en"}, "zh-Hant"},
		{"en zh zh-Hant", []string{"zh-Hant-MO"}, "zh-Hant"},
		{"en zh zh-Hant", []string{"zh-Hans-HK"}, "zh"},
		{"en zh zh-Hant", []string{"zh-SG"}, "zh"},
		{"en zh-TW zh-CN", []string{"zh"}, "zh-CN"},
		{"en zh-TW zh-CN", []string{"zh-HK"}, "zh-TW"},
		{"en zh-Hant", []string{"zh-CN"}, "zh-Hant"},
		// a region that is not offered
		{"en pt-BR", []string{"pt"}, "pt-BR"},
		{"en pt-BR", []string{"pt-PT, en"}, "pt-BR"},
		{"en-GB en-US", []string{"en-AU"}, "en-GB"},
		{"en de-CH", []string{"de-1996-x-own"}, "de-CH"},
		// what cannot be read is skipped
		{"en zh", []string{"zh;q=2"}, "en"},
		{"en zh", []string{"zh;q=-1"}, "en"},
		{"en zh", []string{"zh;q=0.1234"}, "en"},
		{"en zh", []string{"zh;q=1.001"}, "en"},
		{"en zh", []string{"zh;q="}, "en"},
		{"en zh", []string{"zh;q=0,5"}, "en"},
		{"en zh", []string{"zh;x=1"}, "en"},
		{"en zh", []string{"zh;q=abc, de, zh;q=0.3"}, "zh"},
		{"en zh", []string{"-,--,z-h,zh_CN,中文,\x00"}, "en"},
		{"en zh", []string{"zh-" + strings.Repeat("a", 40)}, "en"},
		{"en zh", []string{strings.Repeat("de,", 3000) + "zh"}, "en"},
		{"en zh", []string{strings.Repeat("a", 10<<10), "zh"}, "en"},
	} {
		tags := strings.Fields(c.offered)
		if got := tags[language.Offer(tags...).Choose(c.fields)]; got != c.want {
			t.Errorf("%s offered, %q gets %s, want %s", c.offered, c.fields, got, c.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"de": "de", "EN": "en", "zh-hant": "zh-Hant", "pt-br": "pt-BR", "zh_TW": "zh-TW", "no": "no",
	} {
		if got, err := language.Canonical(text); got != want || err != nil {
			t.Errorf("%q becomes %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "*", "und", "german", "xx", "de-XX1", "zh-", "de;q=1", "中文"} {
		if got, err := language.Canonical(text); err == nil || !strings.Contains(err.Error(), "is not a language tag") {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

// Whatever a client sends, it gets a language that is offered.
func FuzzChoose(f *testing.F) {
	for _, text := range []string{"zh-CN,zh;q=0.9", "*;q=0", "de-x-y;q=1.000", ";;q=,,"} {
		f.Add(text, text)
	}
	tags := []string{"en", "zh", "zh-Hant", "pt-BR"}
	o := language.Offer(tags...)
	f.Fuzz(func(t *testing.T, one, two string) {
		i := o.Choose([]string{one, two})
		if i < 0 || i >= len(tags) {
			t.Fatalf("%q, %q: %d", one, two, i)
		}
		if len(one)+len(two) < 400 && i != o.Choose([]string{one + "," + two}) {
			t.Fatalf("%q and %q are not one list", one, two)
		}
	})
}

func BenchmarkChoose(b *testing.B) {
	o := language.Offer("en", "zh")
	fields := []string{"zh-CN,zh;q=0.9,en;q=0.8"}
	b.ReportAllocs()
	for b.Loop() {
		o.Choose(fields)
	}
}
