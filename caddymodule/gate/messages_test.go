package gate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// messagesSite has a gate behind a guard; options are the gate's.
func messagesSite(options string) string {
	return `
	@order {
		method POST
		path /api/order
	}
	stockgate_guard {
		close /closed
	}
	stockgate @order main {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		` + options + `
	}
	handle_errors {
		header Content-Language fr
		respond "page: {http.stockgate.title}"
	}
	respond "shop" 201
`
}

// refusedIn orders an item that is not on sale, as a client that sends these lines of a header.
func refusedIn(s *sitetest.Site, lines ...string) sitetest.Answer {
	s.T.Helper()
	return s.AnswerTo(fmt.Sprintf("POST /api/order HTTP/1.1\nHost: shop\nX-User-Id: u1\nContent-Type: application/json\n%sContent-Length: 14\n\n{\"sku\":\"nope\"}", strings.Join(append(lines, ""), "\n")))
}

// says checks the sentence of an answer, its language and whether it varies.
func says(t *testing.T, a sitetest.Answer, language, vary, title string) {
	t.Helper()
	var p struct{ Title, Reason string }
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil || p.Title != title || p.Reason != a.Header.Get("Stockgate-Refusal") || p.Reason == "" {
		t.Errorf("%d %s: want %q (%v)", a.Status, a.Body, title, err)
	}
	if a.Header.Get("Content-Language") != language || a.Header.Get("Vary") != vary {
		t.Errorf("headers %v, want the language %s", a.Header, language)
	}
}

const (
	notOnSale   = "This item is not on sale."
	notOnSaleZh = "该商品未参加本次活动。"
)

// Without an option, clients choose between English and Chinese, whatever they send.
func TestRefusalsInTheBuyersLanguage(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, messagesSite(""))
	for lines, want := range map[string]string{
		"":                                                   "en",
		"Accept-Language:":                                   "en",
		"Accept-Language: *":                                 "en",
		"Accept-Language: de":                                "en",
		"Accept-Language: zh-CN":                             "zh",
		"accept-language: zh-CN,zh;q=0.9":                    "zh",
		"Accept-Language: zh-Hant-TW":                        "zh",
		"Accept-Language: de, zh;q=0.5":                      "zh",
		"Accept-Language: en, zh":                            "en",
		"Accept-Language: en;q=0, *":                         "zh",
		"Accept-Language: zh;q=2":                            "en",
		"Accept-Language: de\nAccept-Language: zh":           "zh",
		"Accept-Language: " + strings.Repeat("zh-CN,", 1700): "en",
		"Accept-Language: " + strings.Repeat("z", 10<<10):    "en",
	} {
		title := map[string]string{"en": notOnSale, "zh": notOnSaleZh}[want]
		says(t, refusedIn(s, strings.Split(lines, "\n")[:min(1, len(lines))+strings.Count(lines, "\n")]...), want, "Accept-Language", title)
	}
	a := s.AnswerTo("POST /closed HTTP/1.1\nHost: shop\nAccept-Language: zh\nContent-Length: 0\n\n")
	says(t, a, "zh", "Accept-Language", "此下单入口已关闭。")
	a = s.AnswerTo("POST /x/..%2fapi/order HTTP/1.1\nHost: shop\nAccept-Language: zh\nContent-Length: 0\n\n")
	says(t, a, "zh", "Accept-Language", "请求内容有误，无法识别。")
	a = s.AnswerTo("HEAD /closed HTTP/1.1\nHost: shop\nAccept-Language: zh\n\n")
	if a.Header.Get("Content-Language") != "zh" || a.Body != "" {
		t.Errorf("HEAD: %v %s", a.Header, a.Body)
	}
}

// A file has other texts and languages. Texts of a gate take precedence over the texts for all gates, and a reload
// reads the file again; until then a change of the file has no effect.
func TestMessagesFromAFile(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, messagesSite(""))
	file := s.File("messages.yaml", "de:\n  unknown_item: Nicht im Angebot.\n  closed_door: Geschlossen.\nno:\n  unknown_item: Ikke til salgs.\n")
	own := s.File("own.json", "{\n\t\"de\": {\"unknown_item\": \"Hier nicht.\"}\n}")
	s.Options = "messages " + file
	load := func(options string) {
		t.Helper()
		if err := s.LoadCaddyfile(messagesSite(options)); err != nil {
			t.Fatal(err)
		}
	}
	load("")
	says(t, refusedIn(s, "Accept-Language: de-AT, en"), "de", "Accept-Language", "Nicht im Angebot.")
	says(t, refusedIn(s, "Accept-Language: no"), "no", "Accept-Language", "Ikke til salgs.")
	says(t, refusedIn(s, "Accept-Language: fr"), "en", "Accept-Language", notOnSale)
	says(t, s.AnswerTo("POST /closed HTTP/1.1\nHost: shop\nAccept-Language: de\nContent-Length: 0\n\n"), "de", "Accept-Language", "Geschlossen.")

	load("messages " + own)
	says(t, refusedIn(s, "Accept-Language: de"), "de", "Accept-Language", "Hier nicht.")
	says(t, refusedIn(s, "Accept-Language: no"), "no", "Accept-Language", "Ikke til salgs.")

	load("messages {\nlanguages zh\n}")
	says(t, refusedIn(s, "Accept-Language: de"), "zh", "", notOnSaleZh)
	load("messages {\nlanguages de no\n}") // of which the file for all has texts
	says(t, refusedIn(s, "Accept-Language: zh"), "de", "Accept-Language", "Nicht im Angebot.")

	if err := os.WriteFile(file, []byte("de: {unknown_item: Leider nicht.}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load("refuse unknown_item error")
	if a := refusedIn(s, "Accept-Language: de"); a.Body != "page: Leider nicht." || a.Header.Get("Content-Language") != "fr" || a.Status != 404 {
		t.Errorf("a page of errors: %v %s", a.Header, a.Body)
	}
	load("")
	if err := os.WriteFile(file, []byte("de: {unknown_item: Noch nicht.}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, refusedIn(s, "Accept-Language: de"), "de", "Accept-Language", "Leider nicht.")
	load("")
	says(t, refusedIn(s, "Accept-Language: de"), "de", "Accept-Language", "Noch nicht.")
}

// A wrong file keeps the configuration from loading, and the error names the file and the mistake.
func TestMessagesThatAreWrong(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, messagesSite(""))
	for text, want := range map[string]string{
		"":                                 "it has no texts",
		"# nothing\n":                      "it has no texts",
		"de:\n":                            "language de: it has no text",
		"de: {soldout: Weg.}\n":            `there is no reason "soldout"`,
		"german: {sold_out: Weg.}\n":       `"german" is not a language tag`,
		"de: {sold_out: }\n":               "sold_out: it has no text",
		"de: {sold_out: [a]}\n":            "write texts by reason below each language",
		"sold_out: Weg.\n":                 "write texts by reason below each language",
		"- de\n":                           "write texts by reason below each language",
		"de: {sold_out: a, sold_out: b}\n": "sold_out",
		"de: {sold_out: a}\n---\nfr: {sold_out: b}\n": "a second document begins",
		`{"de": {"sold_out": "a"}, "de": {}}`:         "de",
		"de: {sold_out: a":                            "messages",
		"de: {sold_out: \"a\\nb\"}\n":                 "a line break",
		"de: {sold_out: \"{sku}\"}\n":                 "placeholders",
		"x: " + strings.Repeat("y", 2<<20):            "it has more than 1024 KiB",
	} {
		file := s.File("wrong.yaml", text)
		s.Options = "messages " + file
		err := s.LoadCaddyfile(messagesSite(""))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Caddyfile:") || !strings.Contains(err.Error(), "messages "+file+": ") {
			t.Errorf("%.60q: %v, want an error with %q", text, err, want)
		}
	}
	s.Options = "messages nowhere.yaml"
	if err := s.LoadCaddyfile(messagesSite("")); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
	s.Options = ""
	says(t, refusedIn(s, "Accept-Language: zh"), "zh", "Accept-Language", notOnSaleZh)
}

// In JSON the texts stand where the file has them.
func TestMessagesInJSON(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, messagesSite(""))
	gate := `{"handler":"stockgate","buyer":["{header.X-User-Id}"],"lines":[{"sku":["{json.sku}"]}],"messages":%s}`
	if err := s.LoadGate(fmt.Sprintf(gate, `{"texts":{"de":{"unknown_item":"Weg."}},"languages":["de"]}`)); err != nil {
		t.Fatal(err)
	}
	says(t, refusedIn(s, "Accept-Language: zh"), "de", "", "Weg.")
	err := s.LoadGate(fmt.Sprintf(gate, `{"texts":{"de":{"nope":"Weg."}}}`))
	if err == nil || !strings.Contains(err.Error(), `messages: language de: there is no reason "nope"`) {
		t.Errorf("a reason that does not exist: %v", err)
	}
}

// The answer about an order whose shop gave none is in the buyer's language too, whatever the styles of refusals are, and so is a
// title in a body of the operator's.
func TestDoubtInTheBuyersLanguage(t *testing.T) {
	shop := sitetest.NewBackend(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(`
	@order path /api/order
	stockgate @order {
		buyer {header.X-User-Id}
		line {json.sku}
		refuse * 200 {"code":1}
		refuse unknown_item 200 {"msg":"{title}","lang":"{language}"}
	}
	reverse_proxy %s
`, shop.Addr()))
	a := s.AnswerTo("POST /api/order HTTP/1.1\nHost: shop\nX-User-Id: u1\nContent-Type: application/json\nAccept-Language: zh\nContent-Length: 15\n\n{\"sku\":\"plain\"}")
	if a.Status != 502 || a.Header.Get("Content-Language") != "zh" || a.Header.Get("Vary") != "Accept-Language" || !strings.Contains(a.Body, `"title":"暂时无法确认本次购买是否成功，请稍候。"`) {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if a := refusedIn(s, "Accept-Language: zh"); a.Body != `{"msg":"`+notOnSaleZh+`","lang":"zh"}` || a.Header.Get("Content-Language") != "zh" {
		t.Errorf("%v %s", a.Header, a.Body)
	}
}

// A path is relative to the Caddyfile, as for import.
func TestMessagesBesideTheCaddyfile(t *testing.T) {
	s := sitetest.OpenCaddyfile(t, messagesSite(""))
	s.File("messages.yaml", "de: {unknown_item: Daneben.}\n")
	s.File("gates", messagesSite("messages messages.yaml"))
	if err := s.LoadCaddyfile("import " + filepath.Join(s.Dir, "gates")); err != nil {
		t.Fatal(err)
	}
	says(t, refusedIn(s, "Accept-Language: de"), "de", "Accept-Language", "Daneben.")
}
