package rig

import (
	"fmt"
	"strconv"
	"time"
)

// Slot is the slot of a sale's keys.
func Slot(r *Redis, sale string) (string, error) {
	n, err := r.Do("CLUSTER", "KEYSLOT", Key(sale, "meta"))
	return fmt.Sprint(n), err
}

// MigrateSlot moves a slot as redis-cli does, key by key, with a pause in which half of the
// keys are here and half there. A failure leaves the slot as it is; the same call goes on.
func MigrateSlot(from, to *Redis, slot string, pause time.Duration) error {
	var failed error
	do := func(r *Redis, args ...string) any {
		if failed != nil {
			return nil
		}
		answer, err := r.Do(args...)
		failed = err
		return answer
	}
	fromID, toID := fmt.Sprint(do(from, "CLUSTER", "MYID")), fmt.Sprint(do(to, "CLUSTER", "MYID"))
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	for failed == nil {
		keys, _ := do(from, "CLUSTER", "GETKEYSINSLOT", slot, "1").([]any)
		if len(keys) == 0 {
			break
		}
		do(from, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), fmt.Sprint(keys[0]), "0", "10000")
		time.Sleep(pause)
	}
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	return failed
}
