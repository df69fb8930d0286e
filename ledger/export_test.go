package ledger

// DriftPause is the time between two checks of a sale with this many cells.
var DriftPause = driftPause
