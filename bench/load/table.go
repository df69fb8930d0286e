// Package load makes the requests of a case, sends each of them once to check the
// answer, and sends them with wrk or h2load to measure the speed.
package load

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// Mark stands in a request for a number of ten digits that no other request has.
const Mark = "##########"

// Orders describes the orders and their buyers.
type Orders struct {
	Method string // GET or POST
	Host   string
	// SKU and Buyer of the i-th request; a Mark in them becomes a number.
	SKU, Buyer func(i int) string
	// InQuery puts the buyer into the query: h2load varies nothing else.
	InQuery bool
	// Keyed gives each request an idempotency key of its own.
	Keyed bool
	// Solution of the i-th request's challenge; nil: requests have none.
	Solution func(i int) string
}

// Request is the i-th request as it is sent. Its head is about as long as that of a
// program that orders by itself; browsers send more.
func (o Orders) Request(i int) string {
	head := fmt.Sprintf("Host: %s\r\nUser-Agent: buyer\r\nAccept: */*\r\n", o.Host)
	if !o.InQuery {
		head += fmt.Sprintf("X-User-Id: %s\r\n", o.Buyer(i))
	}
	if o.Keyed {
		head += "Idempotency-Key: order-" + Mark + "\r\n"
	}
	if o.Solution != nil {
		head += "Challenge-Solution: " + o.Solution(i) + "\r\n"
	}
	if o.Method == "GET" {
		return fmt.Sprintf("GET %s HTTP/1.1\r\n%s\r\n", o.Target(i), head)
	}
	body := o.Body(i)
	return fmt.Sprintf("POST %s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", o.Target(i), head, len(body), body)
}

// Target is the path and the query of the i-th request. Names of items and buyers need no
// escapes.
func (o Orders) Target(i int) string {
	var query []string
	if o.Method == "GET" {
		query = append(query, "sku="+o.SKU(i), "quantity=1")
	}
	if o.InQuery {
		query = append(query, "buyer="+o.Buyer(i))
	}
	if len(query) == 0 {
		return "/api/order"
	}
	return "/api/order?" + strings.Join(query, "&")
}

// Body is the body of the i-th request, if it is a POST.
func (o Orders) Body(i int) string { return fmt.Sprintf(`{"sku":%q,"quantity":1}`, o.SKU(i)) }

// Write makes the file that wrk.lua reads.
func (o Orders) Write(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		r := o.Request(i)
		fmt.Fprintf(w, "%d\n%s", len(r), r)
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Numbered puts a number in place of every Mark.
func Numbered(request string, number int64) string {
	return strings.ReplaceAll(request, Mark, fmt.Sprintf("%010d", number))
}
