package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/stockgate/stockgate/filters/challenge"
)

// solve gives each request of a contender's table a new solution: of the task that the peer asks for
// now, or of any task where it asks for none. A solution serves one attempt, and a task two minutes.
func (c *contender) solve(ctx context.Context) error {
	if !c.Spec.Solved {
		return nil
	}
	c.orders.Solution = nil
	task := "1.29906640.4.my3teqoPEzIOwrFRd2GHQA"
	if c.Spec.Challenge != "" {
		for range 2 { // the first attempt of an hour passes without
			answer, err := ask(ctx, c.Addr, c.orders.Request(0))
			if err != nil {
				return err
			}
			task = answer.Header.Get("Stockgate-Challenge")
		}
		if task == "" {
			return errors.New("there is no challenge")
		}
	}
	solutions := make([]string, c.requests)
	for i := range solutions {
		var err error
		if solutions[i], err = challenge.Solve(ctx, task); err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
	}
	c.orders.Solution = func(i int) string { return solutions[i] }
	return c.orders.Write(c.table, c.requests)
}

// ask sends one request.
func ask(ctx context.Context, addr, request string) (*http.Response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer, err
}
