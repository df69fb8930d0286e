package ledger

// DriftPause is how long a sale with so many cells is left alone.
var DriftPause = driftPause
