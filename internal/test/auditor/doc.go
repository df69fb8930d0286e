// Package auditor judges a running Stockgate from outside: from the answers to all
// buyers, the orders at the shop and the data in Redis it decides which promises were
// broken. It judges content, never speed.
//
// It and the packages below it use the standard library alone and nothing of this module,
// so that the product and its oracle cannot be wrong together. The formats that it reads
// (journal, cells, records, tokens) are the documented ones.
package auditor
