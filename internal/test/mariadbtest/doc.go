// Package mariadbtest runs a real MariaDB for tests: a server of its own in a temporary directory, on
// a unix socket. A machine without MariaDB fails the test and says how to install it.
package mariadbtest
