// Package pgtest runs a real PostgreSQL for tests: a cluster of its own in a
// temporary directory, on a unix socket. A machine without PostgreSQL fails the test
// and says how to install it.
package pgtest
