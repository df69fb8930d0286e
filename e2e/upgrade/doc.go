// Package upgrade compares the last version, which scripts/build-last builds from history into
// bin/last, with this tree: `make upgrade` runs its tests, see docs/runbook.md#upgrade.
package upgrade
