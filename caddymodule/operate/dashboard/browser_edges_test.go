//go:build browser

package dashboard_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/chromium"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// The page of one edge has what all have counted, lists them, and says above all else that the sale does not sell, and
// since when. Acts are marked in the curves. Nothing is cut off on a phone.
func TestBrowserTwoEdges(t *testing.T) {
	redis, storage := redistest.Start(t), t.TempDir()
	here, other := startEdgeAt(t, redis.Addr(), storage), startEdgeAt(t, redis.Addr(), storage)
	here.ask("PUT", "sales/flash", edgeSale)
	b := chromium.Start(t)
	b.Size(1440, 900, false)
	b.Header("Authorization", ann)
	b.Open("http://" + here.pages + "/ops/?sale=flash")
	b.Until(`document.querySelector('#banner').textContent.startsWith('Not open: its start was')`)
	here.ask("POST", "sales/flash/open", "")
	other.until("it sells", func() bool { return other.rushAs("ann", "cherry@north") != 0 && other.rushAs("ann", "apple") == 201 })
	orders := 1 + other.rush(60, "apple", "berry") + here.rush(30, "berry")
	b.Until(row("#refusals", "confirmed", fmt.Sprint(orders)))
	b.Until(`document.querySelector('#edges tbody tr')?.textContent.includes('× 2') && document.querySelector('#edges tbody tr').textContent.includes('sells') && document.querySelector('#banner').hidden`)
	b.Until(`document.querySelectorAll('#items svg.stack').length === 4 && document.querySelectorAll('#regions tbody tr').length === 3`)
	b.Until(`document.querySelector('#stockChart .marked').textContent.includes('opened the sale')`)
	other.stop()
	here.ask("POST", "sales/flash/pause", "")
	b.Until(`document.querySelector('#banner').textContent.includes('Paused: nothing is sold') && document.querySelector('#banner').textContent.includes('by admin@127.0.0.1')`)
	b.Until(`document.querySelector('#attemptChart .marked').textContent.includes('paused the sale')`)
	b.Until(row("#refusals", "confirmed", fmt.Sprint(orders)))
	accessible(t, b, "paused")
	shots(t, b, "paused")
	chromium.Eval[any](b, `document.querySelector('.engineers').open = true`)
	b.Until(`document.querySelector('#latencyChart canvas').clientHeight > 100 && document.querySelector('#servers').textContent.includes('Redis')`)
	accessible(t, b, "for engineers")
	shots(t, b, "engineers")
	if got := b.Complaints(); len(got) > 0 {
		t.Errorf("the browser complains: %q", got)
	}
}

// Doubts are settled by a file of the shop's orders: what would change is shown first, by the same reading of the file as
// the command's, and nothing has changed before it is confirmed.
func TestBrowserFile(t *testing.T) {
	e := startEdge(t, redistest.Start(t).Addr())
	e.ask("PUT", "sales/flash", edgeSale)
	e.ask("POST", "sales/flash/open", "")
	e.until("it sells", func() bool { return e.rushAs("ann", "berry") == 201 })
	for _, buyer := range []string{"lost1", "lost2", "lost3"} {
		if got := e.rushAs(buyer, "apple"); got != 500 {
			t.Fatalf("the shop answered %d", got)
		}
	}
	var list struct{ Holds []struct{ ID string } }
	if err := json.Unmarshal([]byte(e.ask("GET", "sales/flash/holds?state=in_doubt", "")), &list); err != nil || len(list.Holds) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	text := "total;Ref;day\n9;" + list.Holds[0].ID + ";1\n9;" + list.Holds[1].ID + ";2\n9;other-shop;2\n"
	b := chromium.Start(t)
	b.Size(1440, 900, false)
	b.Header("Authorization", ann)
	b.Open("http://" + e.pages + "/ops/?sale=flash")
	b.Until(`document.querySelector('#questions').textContent.includes('status_500') && document.querySelector('#fromFile button')`)
	chromium.Eval[any](b, `document.querySelector('#fromFile button').click()`)
	b.Until(`document.querySelector('dialog').open && document.activeElement.id === 'file'`)
	accessible(t, b, "choosing a file")
	choose := func(name, text string) {
		t.Helper()
		chromium.Eval[any](b, fmt.Sprintf(`{ const all = new DataTransfer(); all.items.add(new File([%q], %q)); document.querySelector('#file').files = all.files; document.querySelector('dialog form').requestSubmit() }`, text, name))
	}
	choose("wrong.csv", "a,b\n1,2\n")
	b.Until(`document.querySelector('dialog .bad').textContent.includes('wrong.csv: which column has the reservation ids or refs?')`)
	b.Forget() // the browser tells of the 400
	choose("orders.csv", text)
	b.Until(`document.querySelector('dialog .foreseen')?.textContent.includes('2 holds will be confirmed, by 3 names in the file')`)
	if got := chromium.Eval[string](b, `document.querySelector('dialog .foreseen').textContent`); !strings.Contains(got, "1 are not known here, and stay as they are:other-shop") || !strings.Contains(got, "In doubt and not in the file: 1.") {
		t.Errorf("foreseen: %s", got)
	}
	accessible(t, b, "what would change")
	shots(t, b, "file")
	if err := json.Unmarshal([]byte(e.ask("GET", "sales/flash/holds?state=in_doubt", "")), &list); err != nil || len(list.Holds) != 3 {
		t.Errorf("before it is confirmed: %+v, %v", list, err)
	}
	confirm(t, b)
	b.Until(`document.querySelector('#log').textContent.includes('2 holds, 2 units')`)
	b.Until(stockOnPage + ` === '3 106 0 1 3'`)
	if got := b.Complaints(); len(got) > 0 {
		t.Errorf("the browser complains: %q", got)
	}
}
