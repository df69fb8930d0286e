package caddymodule

// CloseFlights closes the desk to new attempts, as the end of its last configuration does.
func CloseFlights() {
	f := &latest().currentDesk().flights
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}
