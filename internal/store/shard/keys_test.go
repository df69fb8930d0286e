package shard_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// The keys of a shard have the same places here and in the scripts.
func TestKeysAreThoseOfTheScripts(t *testing.T) {
	places := map[string]int{}
	for _, file := range []string{"shard", "fence"} {
		source, err := os.ReadFile("../../../lua/" + file + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^local ([A-Z_]+_KEY[A-Z_, ]*) = ([0-9, ]+)$`).FindAllStringSubmatch(string(source), -1) {
			numbers := strings.Split(m[2], ", ")
			for i, name := range strings.Split(m[1], ", ") {
				if places[name], err = strconv.Atoi(numbers[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	keys := map[string]int{
		"META_KEY": shard.MetaKey, "CELLS_KEY": shard.CellsKey, "LIMITS_KEY": shard.LimitsKey, "RECORDS_KEY": shard.RecordsKey, "DEADLINES_KEY": shard.DeadlinesKey,
		"IN_DOUBT_KEY": shard.InDoubtKey, "UNBACKED_KEY": shard.UnbackedKey, "TOMBSTONES_KEY": shard.TombstonesKey, "ADJUSTMENTS_KEY": shard.AdjustmentsKey,
		"JOURNAL_KEY": shard.JournalKey, "BINDINGS_KEY": shard.BindingsKey, "RETURNS_KEY": shard.ReturnsKey, "UNPAID_KEY": shard.UnpaidKey,
		"LINE_KEY": shard.LineKey, "ORDERS_KEY": shard.OrdersKey, "AT_SHOP_KEY": shard.AtShopKey, "QUEUE_KEY": shard.QueueKey, "WAITLIST_KEY": shard.WaitlistKey, "EDGES_KEY": shard.EdgesKey,
	}
	for name, place := range keys {
		if places[name] != place+1 {
			t.Errorf("%s is key %d in the scripts, %d here", name, places[name], place+1)
		}
	}
	if len(places) != len(keys)+2 { // reports and tail, which only fence.lua uses
		t.Errorf("the scripts name the keys %v", places)
	}
}
