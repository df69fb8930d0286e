// Package list answers, at the edge and in well under a microsecond, whether a
// named list of addresses, buyers, phones or devices has an entry, for lists of
// up to ten million.
//
// Every list has a Bloom filter in front of it. Its "no" is final and costs no network.
// Its "maybe" leads to an exact lookup: in memory for a list from a file ([File]), at
// the list's [HashStore] for a list that is stored elsewhere ([Hashed]). So no attempt is
// ever refused or admitted by a false positive.
//
// The package depends on neither Caddy nor Redis.
package list
