package fast_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/draw"
)

// manySites have every way to a gate that the wrapper can follow, and some that it cannot.
const manySites = `
SITEshop.example.comPORT {
	@post {
		method POST
		path /api/order
	}
	@beta {
		header X-Beta *
		query beta=1
		path /beta/*
	}
	stockgate_guard {
		close /closed* 410 "gone to {status}"
	}
	stockgate @post {
		buyer {header.X-User-Id}
		line {json.sku} {json.quantity}
		region {json.region}
		FAST
	}
	stockgate /item/* path {
		buyer {cookie.user}
		line {path.1}
		refuse sold_out 200 {"code":30001,"msg":"{title}","sku":"{sku}","again":"{retry_after}"}
		refuse unknown_item error
		refuse malformed 204
		refuse ended 299 "gone for good"
		FAST
	}
	stockgate /form form {
		buyer {form.user}
		line {form.sku} {form.n}
		FAST
	}
	stockgate /tickets tickets {
		buyer {header.X-User-Id}
		line out {form.out} absent 0
		line soon {form.soon} absent 0
		FAST
	}
	stockgate /asked asked {
		buyer {header.X-User-Id}
		line {query.sku}
		challenge pow {
			above 1 1h
			bits 8 8
			cookie proof
		}
		FAST
	}
	stockgate @beta beta {
		sale {query.sale}
		buyer {header.X-User-Id}
		line {query.sku}
		FAST
	}
	stockgate_status
	respond "shop" 418
}
SITE*.wild.example.comPORT {
	root * /srv
	handle /a/skip* {
		vars skipped yes
	}
	handle /a* {
		stockgate {
			buyer {header.X-User-Id}
			line {json.sku}
			max_body 40
			FAST
		}
		respond 418
	}
	handle {
		respond "elsewhere" 418
	}
}
SITEother.example.comPORT {
	@no not path /api/order
	respond @no 404
	route /api/* {
		stockgate_check check {
			line {json.sku}
			FAST
		}
		respond "passed" 418
	}
}
`

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// generated is a request that may be refused, or anything near it.
func generated(r *rand.Rand) string {
	method := pick(r, "POST", "POST", "POST", "POST", "POST", "GET", "GET", "HEAD", "PUT", "OPTIONS", "post", "BREW")
	target := pick(r, "/api/order", "/api/order", "/api/order", "/api/order", "/API/Order", "/api//order", "/api/order/", "/api/%6frder", "/api/./order",
		"/api/..%2forder", "/api/..;/order", "/api/order;x=1", "//api/order", "/api/order#x", "/other", "/", "/api/order\\x",
		"/item/out", "/item/soon", "/item/gone", "/item/%6eope", "/item/", "/item/a/b", "/item/nope?_method=PUT",
		"/form", "/tickets", "/beta/x?beta=1&sku=out", "/beta/x?beta=1&sku=soon&sale=later", "/beta/x?beta=1&sku=out&sale=nope", "/beta/x?beta=2", "/beta/x?beta=1&sku=%zz", "/beta/x?Beta=1&sku=out", "/beta/x?beta=1&beta=2&sku=out", "/closed", "/CLOSED//x",
		"/asked?sku=out", "/asked?sku=soon", "/asked?sku=nope",
		"/a", "/a/b", "/a/skip", "/b", "/.well-known/jwks.json", "/.well-known/acme-challenge/x", "/sales/double11/items/plain") +
		pick(r, "", "", "", "", "?", "?x=1", "?sku=out", "?sku=out&sku=out", "?_method=PUT", "?a;b")
	host := pick(r, "shop.example.com", "shop.example.com", "shop.example.com", "shop.example.com", "SHOP.example.com", "shop.example.com:80", "other.example.com",
		"a.wild.example.com", "a.WILD.example.com", "a.b.wild.example.com", "wild.example.com", "[::1]:80", "...", "nobody")
	sku := pick(r, `"out"`, `"out"`, `"soon"`, `"gone"`, `"wait"`, `"bulk"`, `"two"`, `"nope"`, `"<&>"`, `"a b"`, `7`, `null`, `"o\u0075t"`, `""`, `["out"]`)
	body := pick(r,
		`{"sku":`+sku+`}`, `{"sku":`+sku+`}`, `{"sku":`+sku+`,"quantity":1}`, `{"sku":`+sku+`,"quantity":"2"}`, `{"sku":`+sku+`,"quantity":99999}`,
		`{"sku":`+sku+`,"region":"beijing"}`, `{"sku":`+sku+`,"region":"nowhere"}`, `{"sku":`+sku+`,"SKU":"x"}`, `{"sku":`+sku, ``, `x`, "\xff",
		`sku=out&user=u`, `sku=soon&user=u&n=2`, `sku=out`, `sku=nope&user=%75`, `out=1&soon=0`, `soon=1&out=`, `out=0&soon=`, `out=00`, `{"note":"`+strings.Repeat("x", 5000)+`","sku":`+sku+`}`)
	var h strings.Builder
	tame := r.IntN(2) == 0 // one thing at a time may be odd
	line := func(text string) {
		if text != "" {
			h.WriteString(text + "\r\n")
		}
	}
	line(pick(r, "", "", "", "Accept-Language: zh-CN,zh;q=0.9,en;q=0.8", "accept-language: de, zh;q=0.5", "Accept-Language: de\r\nACCEPT-LANGUAGE: zh", "Accept-Language:", "Accept-Language: *",
		"Accept-Language: zh;q=2", "Accept-Language: "+strings.Repeat("zh,", 2000)))
	if tame {
		method, host = pick(r, "POST", "POST", "GET"), "shop.example.com"
		line("X-User-Id: u1")
		line("Content-Type: application/json")
		line("Cookie: user=u1")
		line(fmt.Sprintf("Content-Length: %d", len(body)))
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, target, host, h.String(), body)
	}
	line(pick(r, "X-User-Id: u1", "X-User-Id: u1", "X-User-Id: u1", "x-user-id:  u1\t", "X-USER-ID: u1", "X-User-Id: u1\r\nX-User-Id: u1", "X-User-Id:", "X-User-Id: \xff", "X_User_Id: u1", ""))
	line(pick(r, "Content-Type: application/json", "Content-Type: application/json", "content-type: application/json; charset=utf-8",
		"Content-Type: application/x-www-form-urlencoded", "Content-Type: text/plain", "Content-Type: application/json\r\nContent-Type: application/json", ""))
	line(pick(r, "", "", "", "", "Connection: keep-alive", "Connection: Keep-Alive", "Connection: close", "Connection: X-User-Id", "Connection: keep-alive, te"))
	line(pick(r, "", "", "", "", "", "Upgrade: websocket", "Content-Encoding: gzip", "Content-Encoding: identity", "Trailer: X", "Expect: x", "Pragma: no-cache",
		"Stockgate-Token: x", "X-Original-URL: /", "X-HTTP-Method-Override: GET", "X.Y: z", "TE: trailers", "Transfer-Encoding: identity"))
	line(pick(r, "", "X-Beta: 1", "x-beta: 1", "X-Beta:"))
	line(pick(r, "", "", "Challenge-Solution: 1.2.3", "challenge-solution: 1.1.12.m3dcvjboznogLx4-19Bj_w.1.2.3.4", "Cookie: proof=1"))
	line(pick(r, "", "Cookie: user=u1", "Cookie: user=u1; user=u2", `Cookie: user="u1"`, "cookie: a=b; user=u%31"))
	if len(body) > 0 || r.IntN(3) > 0 {
		line(fmt.Sprintf("%s: %d", pick(r, "Content-Length", "content-length"), len(body)))
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", method, target, host, h.String(), body)
}

// TestFastAnswersAreTheGates asks both servers the same, and wants the same bytes.
func TestFastAnswersAreTheGates(t *testing.T) {
	for name, secure := range map[string]bool{"without TLS": false, "with TLS": true} {
		t.Run(name, func(t *testing.T) {
			fastAnswersAreTheGates(t, sitetest.OpenFastWith(t, secure, "protocols h1 h2", manySites+sitetest.BenchOut))
		})
	}
}

func fastAnswersAreTheGates(t *testing.T, s *sitetest.FastSite) {
	s.SellOut()
	seed := draw.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	before := s.FastAnswers()
	most := draw.Times(300, 3000)
	for n := 0; n < most || s.FastAnswers()-before < most/10; n++ {
		if n == 10*most {
			t.Fatalf("only %d of %d were answered by the wrapper", s.FastAnswers()-before, n)
		}
		request := generated(r)
		if got, want := s.Both(request); got != want {
			t.Fatalf("%q:\n%s\nwant\n%s", request, got, want)
		}
	}
	if exported, is := s.Scrape()["stockgate_fast_refusals_total"], fmt.Sprint(s.FastAnswers()); exported != is {
		t.Errorf("the metric is %s, want %s", exported, is)
	}
}

// TestFastOrNot sends requests that the wrapper must answer, and requests that it must leave
// to Caddy.
func TestFastOrNot(t *testing.T) {
	s := sitetest.OpenFast(t, "", manySites+sitetest.BenchOut)
	s.SellOut()
	json := func(body string) string {
		return fmt.Sprintf("Host: shop.example.com\r\nX-User-Id: u1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for request, want := range map[string]struct {
		fast   bool
		answer string
	}{
		"POST /api/order HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                           {true, "Stockgate-Refusal: sold_out"},
		"POST /api/order HTTP/1.1\r\n" + json(`{"sku":"soon"}`):                                                                          {true, "Retry-After: "},
		"POST /api/order HTTP/1.1\r\n" + json(`{"sku":"wait"}`):                                                                          {true, "Stockgate-Refusal: paused"},
		"POST /api/order HTTP/1.1\r\n" + json(`{"sku":"bulk"}`):                                                                          {true, "at least 2 units"},
		"POST /api/order HTTP/1.1\r\n" + json(`{"sku":"two","region":"x"}`):                                                              {true, "unknown_region"},
		"POST /api/order HTTP/1.1\r\n" + json(`{`):                                                                                       {true, "Stockgate-Refusal: malformed"},
		"POST /tickets HTTP/1.1\r\n" + strings.Replace(json(`out=1&soon=0`), "application/json", "application/x-www-form-urlencoded", 1): {true, "sold_out"},
		"POST /tickets HTTP/1.1\r\n" + strings.Replace(json(`soon=1&out=`), "application/json", "application/x-www-form-urlencoded", 1):  {true, "not_started"},
		"POST /tickets HTTP/1.1\r\n" + strings.Replace(json(`soon=0`), "application/json", "application/x-www-form-urlencoded", 1):       {true, "malformed"},
		"POST /API/order?x=1 HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                       {true, "sold_out"},
		"POST /api//order HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                          {true, "sold_out"},
		"POST /x/..%2fapi/order HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                    {true, "an encoded slash"},
		"POST /api/order;x=1 HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                       {false, "another server could read it as a gated route"},
		"POST /api/..%2forder HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                      {false, "418"},
		"POST /api/%6frder HTTP/1.1\r\n" + json(`{"sku":"out"}`):                                                                         {true, "sold_out"},
		"GET /item/out%2f HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\n\r\n":                                                  {false, "Stockgate-Refusal: malformed"},
		"GET /item/out HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\n\r\n":                                                     {true, `"code":30001`},
		"HEAD /item/out HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\n\r\n":                                                    {true, "200 OK"},
		"GET /item/nope HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\n\r\n":                                                    {false, "404 Not Found"}, // as an error
		"GET /item/gone HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\n\r\n":                                                    {true, "HTTP/1.1 299 status code 299"},
		"GET /beta/?beta=1&sku=out HTTP/1.1\r\nHost: shop.example.com\r\nX-Beta: 1\r\nX-User-Id: u\r\n\r\n":                              {true, "sold_out"},
		"GET /beta/?beta=1&sku=out HTTP/1.1\r\nHost: shop.example.com\r\nX-User-Id: u\r\n\r\n":                                           {false, "418"},
		"GET /api/order HTTP/1.1\r\nHost: shop.example.com\r\n\r\n":                                                                      {false, "418"},
		"OPTIONS /item/out HTTP/1.1\r\nHost: shop.example.com\r\n\r\n":                                                                   {false, "204 No Content"},
		"GET /beta/?+beta=1&sku=out HTTP/1.1\r\nHost: shop.example.com\r\nX-Beta: 1\r\nX-User-Id: u\r\n\r\n":                             {false, "another server could read it as a gated route"},
		"GET /beta/?beta=1&sku=%zz HTTP/1.1\r\nHost: shop.example.com\r\nX-Beta: 1\r\nX-User-Id: u\r\n\r\n":                              {false, "the query is not well-formed"},
		"GET /closed/x HTTP/1.1\r\nHost: shop.example.com\r\n\r\n":                                                                       {false, "gone to 410"},
		"GET /item/../closed HTTP/1.1\r\nHost: shop.example.com\r\n\r\n":                                                                 {false, "gone to 410"},
		"POST /a HTTP/1.1\r\n" + strings.Replace(json(`{"sku":"out"}`), "shop", "x.wild", 1):                                             {true, "sold_out"},
		"POST /a HTTP/1.1\r\n" + strings.Replace(json(`{"note":"longer than 40 bytes","sku":"out"}`), "shop", "x.wild", 1):               {false, "413 Request Entity Too Large"},
		"POST /a/skip HTTP/1.1\r\n" + strings.Replace(json(`{"sku":"out"}`), "shop", "x.wild", 1):                                        {false, "200 OK"},
		"POST /api/x HTTP/1.1\r\n" + strings.Replace(json(`{"sku":"soon"}`), "shop", "other", 1):                                         {true, "not_started"},
		"GET /item/out HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\nConnection: close\r\n\r\n":                                {false, `"code":30001`},
		"POST /api/order HTTP/1.1\r\nAccept-Language: zh-TW, en;q=0.1\r\n" + json(`{"sku":"out"}`):                                       {true, "已售罄。"},
		"GET /item/out HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\naccept-language: de, zh;q=0.5\r\n\r\n":                    {true, `"msg":"已售罄。"`},
		"GET /item/gone HTTP/1.1\r\nHost: shop.example.com\r\nCookie: user=u\r\nAccept-Language: zh\r\n\r\n":                             {true, "gone for good"},
		"POST /x/..%2fapi/order HTTP/1.1\r\nAccept-Language: zh\r\n" + json(`{"sku":"out"}`):                                             {true, "请求内容有误"},
		"GET /closed/x HTTP/1.1\r\nHost: shop.example.com\r\nAccept-Language: zh\r\n\r\n":                                                {false, "gone to 410"},
	} {
		answer, fast := s.Same(request)
		for range 100 {
			if fast || !want.fast {
				break
			}
			// the edge has asked Redis once more: now and then, or because Redis has not answered in time
			s.SellOut()
			answer, fast = s.Same(request)
		}
		if fast != want.fast || !strings.Contains(answer, want.answer) {
			t.Errorf("%q: fast %t, want %t with %q:\n%s", request, fast, want.fast, want.answer, answer)
		}
	}
}
