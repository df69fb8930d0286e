package crowd

import (
	"sync"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Rush lets so many buyers run at a time until all n have had their turn, or stop is closed.
// What a buyer does depends on i alone, so the same seed makes the same rush.
func Rush(n, together int, stop <-chan struct{}, buyer func(i int)) {
	turns := make(chan int)
	var running sync.WaitGroup
	for range together {
		running.Go(func() {
			for i := range turns {
				buyer(i)
			}
		})
	}
	for i := 0; n == 0 || i < n; i++ {
		select {
		case turns <- i:
			continue
		case <-stop:
		}
		break
	}
	close(turns)
	running.Wait()
}

// Units is a cart of one line.
func Units(sku string, qty int64) []auditor.Line { return []auditor.Line{{SKU: sku, Qty: qty}} }

// Tally counts attempts by what they heard.
func Tally(attempts []*auditor.Attempt) map[string]int {
	tally := map[string]int{}
	for _, a := range attempts {
		switch {
		case a.Browse:
			tally["browsed"]++
		case a.Heard == 0:
			tally["no answer"]++
		case a.Queue != "":
			tally["told a place"]++
		case a.Won() && a.Replayed:
			tally["replayed"]++
		case a.Won():
			tally["sold"]++
		case a.Reason != "":
			tally[a.Reason]++
		default:
			tally["other answers"]++
		}
	}
	return tally
}
