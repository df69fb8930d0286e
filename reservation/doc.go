// Package reservation keeps the stock and the reservations of sales in Redis: it
// reserves, confirms, releases, expires and adjusts, each in one atomic script. A Store is
// one Redis and its scripts; package edge is what a selling process runs on top of it.
package reservation
