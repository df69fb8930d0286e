package challenge_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/filters/challenge"
)

// An edge asks for work when attempts come too fast; a client solves the task and
// tries again.
func Example() {
	keys := []challenge.TaskKey{challenge.NewKey(sha256.Sum256([]byte("a secret of all edges")))}
	challenger := challenge.New(challenge.Policy{Above: 1, Window: time.Minute, Least: challenge.LeastBits, Most: challenge.MostBits})
	now, scope := time.Now(), challenge.TaskScope{Gate: "orders", Sale: "double11", Address: "192.0.2.1"}

	fmt.Println("first attempt:", challenger.Judge(now, keys, scope, "") == 0)
	bits := challenger.Judge(now, keys, scope, "")
	fmt.Println("second attempt:", bits == 0)

	task := challenge.AppendTask(nil, now, &keys[0], scope, bits)
	solution, err := challenge.Solve(context.Background(), string(task)) // in the client
	if err != nil {
		panic(err)
	}
	fmt.Println("with a solution:", challenger.Judge(now, keys, scope, solution) == 0)
	fmt.Println("with it again:", challenger.Judge(now, keys, scope, solution) == 0)
	// Output:
	// first attempt: true
	// second attempt: false
	// with a solution: true
	// with it again: false
}
