package stocktest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// UsedMemory is what a Redis has allocated, in bytes.
func UsedMemory(t testing.TB, c *redis.Client) int {
	t.Helper()
	info, err := c.Info(Soon(t), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
