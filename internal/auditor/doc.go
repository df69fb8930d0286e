// Package auditor judges a running Stockgate from outside: it knows what every buyer was
// answered, what every order at the shop was, and what Redis keeps of a sale, and says
// which promise the three break. It decides by what was said, never by how fast.
//
// It and the packages below it use the standard library alone and nothing of this module,
// so that the product and its oracle cannot be wrong together. The formats that it reads
// (journal, cells, records, tokens) are the documented ones.
package auditor
