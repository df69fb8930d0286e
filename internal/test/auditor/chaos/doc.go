// Package chaos runs a sale on real processes while a nemesis breaks them: Redis in several
// topologies, edges, PostgreSQL and the links between them. A seed draws the schedule of
// faults; the auditor judges what the crowd heard, the shop took and Redis has at the end.
package chaos
