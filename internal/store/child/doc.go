// Package child runs the redis-server of `store DIR`: a process of its own for each directory, which
// only this process reaches, and which keeps on the disk what it acknowledges.
//
// Two locks see to it that no directory ever has two servers. This process holds the file lock; another one
// is told its pid. The server holds the file redis.lock, which it inherits: what an earlier process has left
// running is found, and ended, before the next one starts. Both locks end with their process, however it
// ends.
package child
