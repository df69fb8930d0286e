//go:build browser

package dashboard_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/test/chromium"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// The page of one edge has what all have counted, lists them, and says above all else that the sale does not sell, and
// since when. What was done is marked in the curves. Nothing is cut off on a phone.
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
