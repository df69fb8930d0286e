package gate

// GateOfCheck is the gate of a check that was read as that gate.
func GateOfCheck(g *Gate) *Gate {
	c := new(Check)
	c.take(g)
	return c.asGate()
}
