package gate

// GateOfCheck returns the gate of a stockgate_check that was read as that gate.
func GateOfCheck(g *Gate) *Gate {
	c := new(Check)
	c.take(g)
	return c.asGate()
}
