package refuse

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// asked answers a refusal of a client that sent these values of Accept-Language.
func asked(t *testing.T, f *Refuser, no *sale.Refusal, languages ...string) (h http.Header, body string) {
	t.Helper()
	r := httptest.NewRequest("POST", "/api/order", nil)
	if languages != nil {
		r.Header[AcceptLanguage] = languages
	}
	w := httptest.NewRecorder()
	f.Write(f.For(no.Reason), w, r, no)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Result().Header, string(text)
}

func refuserWith(t *testing.T, styles []Appearance, texts map[string]map[string]string, languages ...string) *Refuser {
	t.Helper()
	all, err := builtIn.With(texts, languages)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(styles, all)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each reason has a sentence in both languages that are built in, and these are no others.
func TestBuiltInTexts(t *testing.T) {
	if len(chinese) != len(sale.Kinds) {
		t.Errorf("%d texts in Chinese, and %d reasons", len(chinese), len(sale.Kinds))
	}
	f := refuserWith(t, nil, nil)
	for _, k := range sale.Kinds {
		for tag, want := range map[string]string{"en": k.Title, "zh": chinese[k.Reason]} {
			h, body := asked(t, f, sale.Refuse(k.Reason), tag)
			var p ProblemDocument
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Title != want || want == "" || p.Reason != k.Reason {
				t.Errorf("%s in %s: %s %v", k.Reason, tag, body, err)
			}
			if err := checkText(want); err != nil {
				t.Errorf("%s in %s: %v", k.Reason, tag, err)
			}
			if h.Get("Content-Language") != tag || h.Get("Vary") != AcceptLanguage || h.Get(Header) != string(k.Reason) {
				t.Errorf("%s in %s: %v", k.Reason, tag, h)
			}
		}
	}
}

func TestTextsByLanguage(t *testing.T) {
	german := map[string]map[string]string{"DE": {"sold_out": " Ausverkauft. "}, "zh-hant": {"sold_out": "已售罄（繁體）"}, "en": {"paused": `Paused "<now>".`}}
	titled := []Appearance{{Reasons: []string{"*"}, Body: `{"lang":"{language}","msg":"{title}"}`}}
	for _, c := range []struct {
		name           string
		styles         []Appearance
		texts          map[string]map[string]string
		languages      []string
		reason         sale.Reason
		asks           []string
		language, vary string
		has            string
	}{
		{name: "no header", reason: "sold_out", language: "en", vary: AcceptLanguage, has: `"title":"Sold out."`},
		{name: "own language", texts: german, reason: "sold_out", asks: []string{"de"}, language: "de", vary: AcceptLanguage, has: `"title":"Ausverkauft."`},
		{name: "missing there", texts: german, reason: "paused", asks: []string{"de"}, language: "en", vary: AcceptLanguage, has: `\"\u003cnow\u003e\"`},
		{name: "missing there, another is read too", texts: german, reason: "ended", asks: []string{"de, zh;q=0.5"}, language: "zh", vary: AcceptLanguage, has: "活动已结束。"},
		{name: "traditional", texts: german, reason: "sold_out", asks: []string{"zh-TW"}, language: "zh-Hant", vary: AcceptLanguage, has: "繁體"},
		{name: "traditional, missing", texts: german, reason: "paused", asks: []string{"zh-TW"}, language: "zh", vary: AcceptLanguage, has: "活动已暂停"},
		{name: "the first is the default", languages: []string{"zh", "en"}, reason: "sold_out", asks: []string{"fr"}, language: "zh", vary: AcceptLanguage, has: "已售罄"},
		{name: "one language", languages: []string{"zh"}, reason: "sold_out", asks: []string{"en"}, language: "zh", has: "已售罄"},
		{name: "one language that lacks a text", texts: map[string]map[string]string{"de": {"sold_out": "Weg."}}, languages: []string{"de"}, reason: "paused", asks: []string{"zh"}, language: "en", has: "The sale is paused."},
		{name: "in a body", styles: titled, reason: "sold_out", asks: []string{"zh-CN"}, language: "zh", vary: AcceptLanguage, has: `{"lang":"zh","msg":"已售罄。"}`},
		{name: "in a body, escaped", styles: titled, texts: german, reason: "paused", language: "en", vary: AcceptLanguage, has: `"msg":"Paused \"\u003cnow\u003e\"."`},
		{name: "in HTML, escaped", styles: []Appearance{{Reasons: []string{"*"}, Body: `<html lang="{language}">{title}`}}, texts: german, reason: "paused", language: "en", vary: AcceptLanguage, has: `<html lang="en">Paused &#34;&lt;now&gt;&#34;.`},
		{name: "a body without a title", styles: []Appearance{{Reasons: []string{"*"}, Body: `{"code":1}`}}, reason: "sold_out", asks: []string{"zh"}, has: `{"code":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := refuserWith(t, c.styles, c.texts, c.languages...)
			no := sale.Refuse(c.reason)
			h, body := asked(t, f, no, c.asks...)
			if h.Get("Content-Language") != c.language || h.Get("Vary") != c.vary || !strings.Contains(body, c.has) {
				t.Errorf("%v %s", h, body)
			}
			r := httptest.NewRequest("POST", "/", nil)
			r.Header[AcceptLanguage] = c.asks
			wire, a := f.AppendAnswer(nil, no, nil, 0, r, time.Now())
			head, text, _ := bytes.Cut(wire, []byte("\r\n\r\n"))
			if a == nil || !bytes.Contains(text, []byte(c.has)) || bytes.Contains(head, []byte("Content-Language: "+c.language+"\r\n")) != (c.language != "") || bytes.Contains(head, []byte("Vary: "+c.vary)) != (c.vary != "") {
				t.Errorf("at the connection: %s", wire)
			}
			if _, h, body := f.Response(r, no); h.Get("Content-Language") != c.language || !bytes.Contains(body, []byte(c.has)) {
				t.Errorf("as the answer of an upstream: %v %s", h, body)
			}
			if c.styles == nil && !strings.Contains(body, mustJSON(f.Problem(r, no).Title)) {
				t.Errorf("the document has %q", f.Problem(r, no).Title)
			}
		})
	}
}

func mustJSON(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// The header Vary of an outer handler stays.
func TestVaryIsAdded(t *testing.T) {
	f := refuserWith(t, nil, nil)
	outer := []string{"Origin", "Accept-Encoding"}[:1]
	w := httptest.NewRecorder()
	w.Header()["Vary"] = outer
	f.Write(f.For(sale.SoldOut), w, httptest.NewRequest("POST", "/", nil), sale.Refuse(sale.SoldOut))
	if got := w.Header()["Vary"]; !slices.Equal(got, []string{"Origin", AcceptLanguage}) || outer[:2][1] != "Accept-Encoding" {
		t.Errorf("%q, and the handler's own are %q", got, outer[:2])
	}
}

// The title of a refusal that handle_errors answers is for its placeholder: the page has its own headers.
func TestErrorHasATitle(t *testing.T) {
	f := refuserWith(t, []Appearance{{Reasons: []string{"*"}, Style: "error"}}, nil)
	h, body := asked(t, f, sale.Refuse(sale.SoldOut), "zh")
	if h["Content-Language"] != nil || h["Vary"] != nil || body != "" {
		t.Errorf("%v %s", h, body)
	}
	if got := f.For(sale.SoldOut).Title(http.Header{AcceptLanguage: {"zh"}}); got != "已售罄。" {
		t.Errorf("the title is %s", got)
	}
}

// Texts of a gate take precedence over the texts for all gates, one by one.
func TestTextsOverOthers(t *testing.T) {
	all, err := builtIn.With(map[string]map[string]string{"de": {"sold_out": "Weg.", "paused": "Pause."}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := all.With(map[string]map[string]string{"de": {"paused": "Gleich."}, "fr": {"sold_out": "Épuisé."}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(nil, own)
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[sale.Reason]string{sale.SoldOut: "Weg.", sale.PausedSale: "Gleich."} {
		if _, body := asked(t, f, sale.Refuse(reason), "de-AT"); !strings.Contains(body, want) {
			t.Errorf("%s: %s", reason, body)
		}
	}
	if tags, texts := all.of(sale.PausedSale); !slices.Equal(tags, []string{"en", "zh", "de"}) || texts[2] != "Pause." {
		t.Errorf("the texts for all are %q %q now", tags, texts)
	}
	if tags, _ := own.of(sale.SoldOut); !slices.Equal(tags, []string{"en", "zh", "de", "fr"}) {
		t.Errorf("languages %q", tags)
	}
}

func TestTextsThatAreWrong(t *testing.T) {
	one := func(tag, reason, text string) map[string]map[string]string {
		return map[string]map[string]string{tag: {reason: text}}
	}
	for want, c := range map[string]struct {
		texts     map[string]map[string]string
		languages []string
	}{
		`"german" is not a language tag`:                                  {one("german", "sold_out", "x"), nil},
		`"xx" is not a language tag: xx is unknown`:                       {one("xx", "sold_out", "x"), nil},
		`language de: there is no reason "soldout": there are malformed,`: {one("de", "soldout", "x"), nil},
		`language de: sold_out: it has no text`:                           {one("de", "sold_out", " "), nil},
		`language de: it has no text`:                                     {map[string]map[string]string{"de": nil}, nil},
		`has a line break`:                                                {one("de", "sold_out", "a\nb"), nil},
		`has 501 bytes`:                                                   {one("de", "sold_out", strings.Repeat("x", 501)), nil},
		`is not UTF-8`:                                                    {one("de", "sold_out", "\xff"), nil},
		`has a {`:                                                         {one("de", "sold_out", "{sku} ist weg"), nil},
		`"DE" and "de" are one language`:                                  {map[string]map[string]string{"de": {"paused": "x"}, "DE": {"paused": "y"}}, nil},
		`languages: there is no text in fr`:                               {nil, []string{"en", "fr"}},
		`languages: EN is named twice`:                                    {nil, []string{"en", "EN"}},
		`languages: there are texts in de, which is not named`:            {one("de", "paused", "x"), []string{"en", "zh"}},
		`languages: "deutsch" is not`:                                     {nil, []string{"deutsch"}},
	} {
		if _, err := builtIn.With(c.texts, c.languages); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
