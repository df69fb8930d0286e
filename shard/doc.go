// Package shard is the connection to Redis: it builds the keys, runs the scripts, estimates Redis's
// clock, and says of each error whether an operation may have run.
package shard
