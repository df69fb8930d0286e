package reservation

// Charges is what an attempt costs of the purchase limits.
var Charges = charges
