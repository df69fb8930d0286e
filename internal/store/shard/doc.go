// Package shard is the connection to Redis: it builds the keys, runs the scripts, reads what scripts need not read,
// estimates Redis's clock, and distinguishes errors after which an operation may have run.
package shard
