// Package list answers, at the edge and in well under a microsecond, whether a
// named list of addresses, buyers, phones or devices has an entry, for lists of
// up to ten million.
//
// Every list stands behind a Bloom filter. Its no is final and costs no network.
// Its maybe is only a reason to ask exactly: in memory for a list from a file
// ([File]), at whoever keeps the list for one that lives elsewhere ([Mirror]). So
// nobody is ever refused or admitted by a false positive.
//
// The package knows neither Caddy nor Redis.
package list
