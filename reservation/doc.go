// Package reservation keeps the stock of a sale in Redis: it reserves, confirms,
// releases, expires and adjusts, each as one atomic script, and it keeps an edge's
// view of the sales.
//
// Store is one Redis and its scripts. Edge is what a gateway process runs on top
// of it: the catalogue of sales, the reaper of overdue holds, the backlog of
// outcomes that Redis could not be told yet, and the secret that all edges share.
package reservation
