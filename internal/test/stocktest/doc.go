// Package stocktest has edges, sales and audits of Redis for the tests of other packages.
package stocktest
