// Package rates counts the rates that all edges share, in Redis.
package rates
