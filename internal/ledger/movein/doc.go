// Package movein reads what a shop's own script has kept in Redis: how many units are left, and
// who has bought how many. It only reads.
package movein
