// Package counts sums over all edges what each has counted of a sale: attempts, and how long they took. Each
// process writes its own counts into a hash beside the sale now and then, see lua/counts.lua, and every edge
// reads the hash. No attempt waits for it.
package counts
