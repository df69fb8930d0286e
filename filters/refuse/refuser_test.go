package refuse

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

func refused(t *testing.T, styles []Appearance, no *sale.Refusal) *http.Response {
	t.Helper()
	f, err := New(styles, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Access-Control-Allow-Origin", "https://shop.example")
	if !f.Write(f.For(no.Reason), w, httptest.NewRequest("POST", "/api/order", strings.NewReader("{}")), no) {
		t.Fatal("nothing is written")
	}
	return w.Result()
}

// Every reason has the status of the contract, the header and a problem document.
func TestProblemOfEveryReason(t *testing.T) {
	statuses := map[sale.Reason]int{
		"malformed": 400, "quantity": 400, "body_too_large": 413, "no_buyer": 401, "denied": 403, "not_eligible": 403, "challenge": 403, "limit_reached": 403, "too_many_unpaid": 403,
		"unknown_item": 404, "unknown_sale": 404, "unknown_region": 404, "closed_door": 404,
		"not_started": 409, "paused": 409, "sold_out": 409, "all_held": 409, "not_your_turn": 409, "available": 409, "two_entries": 409, "list_full": 409, "no_cart": 409, "cart_changed": 409, "duplicate": 409, "pending": 409, "in_doubt": 409, "already_ordered": 409,
		"ended": 410, "closed": 410, "key_reused": 422, "too_early": 425, "rate_limited": 429, "busy": 503, "not_sent": 503, "unavailable": 503,
	}
	waits := map[sale.Reason]bool{"too_many_unpaid": true, "paused": true, "all_held": true, "list_full": true, "duplicate": true, "pending": true, "in_doubt": true, "rate_limited": true, "busy": true, "not_sent": true, "unavailable": true}
	if len(statuses) != len(sale.Kinds) {
		t.Errorf("%d reasons are tested, %d exist", len(statuses), len(sale.Kinds))
	}
	for reason, status := range statuses {
		t.Run(string(reason), func(t *testing.T) {
			res := refused(t, nil, sale.Refuse(reason))
			var p ProblemDocument
			body, _ := io.ReadAll(res.Body)
			if err := json.Unmarshal(body, &p); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if res.StatusCode != status || p.Status != status {
				t.Errorf("status %d, in the document %d, want %d", res.StatusCode, p.Status, status)
			}
			if p.Type != "urn:stockgate:refusal:"+string(reason) || p.Reason != reason || p.Title == "" {
				t.Errorf("document %s", body)
			}
			h := res.Header
			if h.Get("Stockgate-Refusal") != string(reason) || h.Get("Cache-Control") != "no-store" ||
				h.Get("Content-Type") != "application/problem+json" || h.Get("Content-Length") != strconv.Itoa(len(body)) {
				t.Errorf("header %v", h)
			}
			if h.Get("Access-Control-Allow-Origin") == "" {
				t.Error("the header that an outer handler set is gone")
			}
			if got := h.Get("Retry-After") != ""; got != waits[reason] {
				t.Errorf("Retry-After %q", h.Get("Retry-After"))
			}
			if after := h.Get("Retry-After"); after != "" && after != strconv.FormatInt(p.RetryAfter, 10) {
				t.Errorf("Retry-After %s, in the document %d", after, p.RetryAfter)
			}
		})
	}
}

func TestProblemNamesWhatHelps(t *testing.T) {
	limit := &sale.Limit{Per: "buyer", Every: "sale", Max: 2, Count: "units"}
	res := refused(t, nil, &sale.Refusal{Reason: sale.LimitReached, Limit: limit, SKU: `a"b<`})
	var p ProblemDocument
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Limit == nil || *p.Limit != *limit || p.SKU != `a"b<` {
		t.Errorf("limit %v, sku %q", p.Limit, p.SKU)
	}
}

// Clients that wait for the start do not all come back in the same second.
func TestRetryAfterIsSpread(t *testing.T) {
	kind, _ := sale.KindOf(sale.NotStarted)
	seen := make(map[int64]bool)
	for range 1000 {
		after := retryAfter(kind, &sale.Refusal{Reason: sale.NotStarted, RetryAfter: 60})
		if after < 60 || after > 62 {
			t.Fatalf("%d s to wait for a start in 60 s", after)
		}
		seen[after] = true
	}
	if len(seen) < 2 {
		t.Error("all come back in the same second")
	}
	if after := retryAfter(kind, sale.Refuse(sale.NotStarted)); after != 0 {
		t.Errorf("%d s to wait for a start that is not known", after)
	}
}

func TestRefusalStyles(t *testing.T) {
	for _, c := range []struct {
		name        string
		styles      []Appearance
		no          *sale.Refusal
		status      int
		contentType string
		body        string
	}{
		{
			name:   "always 200 with a code",
			styles: []Appearance{{Reasons: []string{"sold_out", "limit_reached"}, Status: 200, Body: `{"code":30001,"msg":"{title}"}`}},
			no:     sale.Refuse(sale.SoldOut), status: 200, contentType: "application/json", body: `{"code":30001,"msg":"Sold out."}`,
		},
		{
			name:   "html, escaped",
			styles: []Appearance{{Reasons: []string{"*"}, Body: `<p>{reason} {status} {sku}</p>`}},
			no:     &sale.Refusal{Reason: sale.SoldOut, SKU: "<b>"}, status: 409, contentType: "text/html; charset=utf-8", body: `<p>sold_out 409 &lt;b&gt;</p>`,
		},
		{
			name:   "json, escaped",
			styles: []Appearance{{Reasons: []string{"*"}, Body: `{"sku":"{sku}"}`}},
			no:     &sale.Refusal{Reason: sale.SoldOut, SKU: `a"b`}, status: 409, contentType: "application/json", body: `{"sku":"a\"b"}`,
		},
		{
			name:   "json, a quote at the end",
			styles: []Appearance{{Reasons: []string{"*"}, Body: `{"sku":"{sku}"}`}},
			no:     &sale.Refusal{Reason: sale.SoldOut, SKU: `a"`}, status: 409, contentType: "application/json", body: `{"sku":"a\""}`,
		},
		{
			name:   "what fills in is not filled in again",
			styles: []Appearance{{Reasons: []string{"*"}, Body: "no {sku}"}},
			no:     &sale.Refusal{Reason: sale.SoldOut, SKU: "{title}"}, status: 409, contentType: "text/plain; charset=utf-8", body: "no {title}",
		},
		{
			name:   "the last of two alike counts",
			styles: []Appearance{{Reasons: []string{"sold_out"}, Body: "a"}, {Reasons: []string{"sold_out"}, Status: 418, Body: "b", ContentType: "text/x"}},
			no:     sale.Refuse(sale.SoldOut), status: 418, contentType: "text/x", body: "b",
		},
		{
			name:   "a named reason counts more than all",
			styles: []Appearance{{Reasons: []string{"sold_out"}, Body: "a"}, {Reasons: []string{"*"}, Body: "b"}},
			no:     sale.Refuse(sale.SoldOut), status: 409, contentType: "text/plain; charset=utf-8", body: "a",
		},
		{
			name:   "all others",
			styles: []Appearance{{Reasons: []string{"sold_out"}, Body: "a"}, {Reasons: []string{"*"}, Body: "b"}},
			no:     sale.Refuse(sale.PausedSale), status: 409, contentType: "text/plain; charset=utf-8", body: "b",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := refused(t, c.styles, c.no)
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != c.contentType || string(body) != c.body {
				t.Errorf("%d %s %s", res.StatusCode, res.Header.Get("Content-Type"), body)
			}
		})
	}
}

func TestRefuserRefuses(t *testing.T) {
	for _, c := range []struct {
		style Appearance
		want  string
	}{
		{Appearance{}, "no reason is named"},
		{Appearance{Reasons: []string{"soldout"}}, `there is no reason "soldout"`},
		{Appearance{Reasons: []string{"*"}, Style: "page"}, `style "page"`},
		{Appearance{Reasons: []string{"*"}, Style: "error", Body: "x"}, "no body of yours"},
		{Appearance{Reasons: []string{"*"}, Status: 99}, "outside 200 to 599"},
	} {
		if _, err := New([]Appearance{c.style}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.style, err, c.want)
		}
	}
}
