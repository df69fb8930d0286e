// Package shopdb asks a shop's own database. Commands use it, never the server: only the machine of a command needs to reach
// that database and to know its password.
package shopdb
