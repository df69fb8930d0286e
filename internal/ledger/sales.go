package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// lookEvery is how often the list of sales is read.
const lookEvery = time.Second

// repeatLog is how soon another error of the same sale is logged.
const repeatLog = time.Minute

// Sales lists sales: a journal.Journal.
type Sales interface {
	Sales(ctx context.Context) ([]string, error)
}

// EachSale runs work for every sale until ctx ends, each in its own goroutine, so that a stuck
// sale delays no other. It ends the work for a sale that is gone, starts it for a new one, and
// returns when all work has ended. It calls failed when the sales cannot be listed.
func EachSale(ctx context.Context, in Sales, failed func(), work func(ctx context.Context, sale string)) {
	var loops sync.WaitGroup
	defer loops.Wait()
	following := make(map[string]context.CancelFunc)
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callFor)
		ids, err := in.Sales(call)
		cancel()
		if err == nil {
			here := make(map[string]bool, len(ids))
			for _, sale := range ids {
				here[sale] = true
				if following[sale] == nil {
					one, end := context.WithCancel(ctx)
					following[sale] = end
					loops.Go(func() { work(one, sale) })
				}
			}
			for sale, end := range following {
				if !here[sale] {
					end()
					delete(following, sale)
				}
			}
		} else if ctx.Err() == nil {
			failed()
		}
		select {
		case <-looking.C:
		case <-ctx.Done():
			for _, end := range following {
				end()
			}
			return
		}
	}
}

// Trouble remembers the last error of a sale, so that it is logged once.
type Trouble struct {
	text   string // empty: nothing
	lacks  bool   // it is a PositionError
	logged time.Time
}

// Note says what to log: a new error, another error after long enough, or the end of an error. Movements that the ledger
// lacks are logged at once, because after a failover the error before is that the database was away.
func (t *Trouble) Note(err error) (wrong, right bool) {
	_, lacks := errors.AsType[*PositionError](err)
	switch text := fmt.Sprint(err); {
	case err == nil && t.text != "":
		t.text = ""
		return false, true
	case err != nil && (t.text == "" || t.text != text && (lacks && !t.lacks || time.Since(t.logged) > repeatLog)):
		t.text, t.lacks, t.logged = text, lacks, time.Now()
		return true, false
	}
	return false, false
}
